import { statfsSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LENGTHS } from "./test/faults/lengths.ts";
import { threadsInOneFile } from "./test/support/threads-in-one-file.ts";
import { findChromium } from "./test/ui/chromium.ts";

const TESTS: Readonly<Record<string, string[]>> = {
  faults: [
    "test/faults/*.test.ts",
    "test/examples/receivers.test.ts",
    ...Object.keys(LENGTHS).map((file) => `test/${file}.test.ts`),
  ],
  chaos: ["test/chaos/*.test.ts"],
  places: ["test/places/*.test.ts"],
  docs: ["test/docs/*.test.ts"],
  ui: ["test/ui/*.test.ts"],
  exe: ["test/exe/*.test.ts", "test/e2e/*.test.ts", "test/cli/{terminal,output/streams}.test.ts"],
};

const MEMORY = "/dev/shm";
const LEAST_FREE_BYTES = 2 * 1024 ** 3;

/** Each of the store's commits waits for the disk, 1 to 10 ms with ordinary ones; a file system in memory is there at once. */
function foldersPlace(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= LEAST_FREE_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

// Said once, by `npm test` itself.
if (process.env["npm_lifecycle_event"] === "test") {
  const where = findChromium() === undefined ? "needs chromium, and there is none here" : "has these";
  process.stdout.write(`The tests of the page in a browser are left out: npm run test:ui ${where}.\n`);
}

/**
 * `vitest --mode faults` runs the tests that have a long form, in that, and nothing else; `--mode exe` those of the single
 * executable, and the end-to-end ones with it in the place of the installed program; `--mode places` tries copies of this
 * checkout in other folders; `--mode chaos` several nodes that fail; `--mode ui` the page in a browser; `--mode docs` runs the examples of all documents, not of the front page alone.
 */
export default defineConfig(({ mode }) => ({
  plugins: [threadsInOneFile()],
  test: {
    include: TESTS[mode] ?? ["test/!(chaos|exe|places|ui)/**/*.test.ts", "test/ui-parts/*.test.ts"],
    // Files run one after the other in the same processes, with what they import loaded once: a process for each takes
    // 0.3 s of CPU before its first test. So each file leaves its process as it found it.
    isolate: TESTS[mode] !== undefined,
    env: {
      FAULTS: mode === "faults" ? "long" : "short",
      EXAMPLES: mode === "docs" ? "all pages" : "front page",
      ...(TESTS[mode] === undefined ? { TMPDIR: foldersPlace() } : {}),
      ...(mode === "exe" ? { TEST_EXECUTABLE: join(import.meta.dirname, "dist-exe/evreg") } : {}),
    },
    // They take turns: each measures how soon a server is well again.
    fileParallelism: mode !== "faults",
    // @oclif/test captures stdout itself and gets nothing through vitest's interception.
    disableConsoleIntercept: true,
    // A limit is for what hangs: a slow machine must fail no test by it.
    testTimeout: mode === "places" ? 600_000 : 60_000,
    hookTimeout: 60_000,
    // Of a second, a busy machine spends all on something else.
    expect: { poll: { timeout: 30_000 } },
    setupFiles: ["test/support/compile-cache.ts"],
    pool: "forks",
    // One more than there are cores: half of the suite waits for disks, sockets and child processes.
    maxWorkers: availableParallelism() + 1,
  },
}));
