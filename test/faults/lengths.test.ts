import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LENGTHS, lengthText, type Tested } from "./lengths.ts";

const TESTS = join(import.meta.dirname, "..");
const files = Object.keys(LENGTHS) as Tested[];

/** The column of lengths in the tables of README.md, by the test's file. */
function toldLengths(): Record<string, string> {
  const text = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
  const rows = text.matchAll(/^\| `([^`]+)` \|(.+)\|$/gm);
  return Object.fromEntries(
    [...rows].map(([, name = "", cells = ""]) => {
      const isHere = !name.includes("/");
      const length = cells.split(" | ").at(isHere ? 2 : 1) ?? "";
      return [isHere ? `faults/${name}` : name, length.trim()];
    }),
  );
}

test("the README has the length of each test", () => {
  const { "faults/clock": clock, ...told } = toldLengths();
  expect(told).toEqual(Object.fromEntries(files.map((file) => [file, lengthText(file)])));
  expect(clock).toBe("the same");
});

test("each test with a length exists, and each test that asks for one has it", () => {
  expect(files.filter((file) => !existsSync(join(TESTS, `${file}.test.ts`)))).toEqual([]);
  const asking = globSync("**/*.test.ts", { cwd: TESTS })
    .map((name) => name.replace(/\.test\.ts$/, ""))
    .filter((file) =>
      /\b(?:isLong|lengthOf|rounds)\b.* from "[./a-z]*\/length\.ts"/.test(
        readFileSync(join(TESTS, `${file}.test.ts`), "utf8"),
      ),
    );
  expect(asking.toSorted()).toEqual(files.filter((file) => file !== "sdk/receivers").toSorted());
});
