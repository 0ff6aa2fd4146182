import { expect, it } from "vitest";
import { type EvregError, exitCodeFor } from "../../src/domain/error.ts";
import { startAlone } from "../../src/store/libsql/open.ts";
import { EngineFailure } from "../../src/store/libsql/thread/sql.ts";

it.each([
  ["full", 6],
  ["replace", 1],
] as const)(
  "a store that cannot be opened by a failure of the kind %s ends a command with %i",
  async (kind, code) => {
    const failed = startAlone("/data", () => Promise.reject(new EngineFailure(kind, "the disk is full")));
    const error: EvregError = await failed.catch((thrown) => thrown);
    expect(error).toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("the disk is full"),
    });
    expect(exitCodeFor(error)).toBe(code);
  },
);
