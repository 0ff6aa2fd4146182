import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // @oclif/test captures stdout itself and gets nothing through vitest's interception.
    disableConsoleIntercept: true,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    setupFiles: ["test/support/compile-cache.ts"],
    pool: "forks",
    // vitest would leave a core of two idle; half of the suite waits for disks, sockets and child processes.
    maxWorkers: Math.max(2, availableParallelism() - 1),
  },
});
