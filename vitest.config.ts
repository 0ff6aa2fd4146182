import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** The tests that have a long form. */
const LONG = ["test/faults/*.test.ts", "test/schema/compatibility/{hunt,certainty}.test.ts"];

/** `vitest --mode faults` runs the long form of those tests, and nothing else. */
export default defineConfig(({ mode }) => ({
  test: {
    include: mode === "faults" ? LONG : ["test/**/*.test.ts"],
    env: { FAULTS: mode === "faults" ? "long" : "short" },
    // They take turns: each measures how soon a server is well again.
    fileParallelism: mode !== "faults",
    // @oclif/test captures stdout itself and gets nothing through vitest's interception.
    disableConsoleIntercept: true,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    setupFiles: ["test/support/compile-cache.ts"],
    pool: "forks",
    // vitest would leave a core of two idle; half of the suite waits for disks, sockets and child processes.
    maxWorkers: Math.max(2, availableParallelism() - 1),
  },
}));
