import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // @oclif/test captures stdout itself and gets nothing through vitest's interception.
    disableConsoleIntercept: true,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    pool: "forks",
  },
});
