import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LENGTHS } from "./lengths.ts";

const TESTS = join(import.meta.dirname, "..");
const files = Object.keys(LENGTHS);
/** Those that have their length from a file that other tests have as well. */
const INDIRECT = new Set(["sdk/receivers", "store/libsql"]);
const namesIn = (text: string): string[] => [...text.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!);

test("each test with a length exists, and each test that asks for one has it", () => {
  expect(files.filter((file) => !existsSync(join(TESTS, `${file}.test.ts`)))).toEqual([]);
  const asking = globSync("**/*.test.ts", { cwd: TESTS })
    .map((name) => name.replace(/\.test\.ts$/, ""))
    .filter((file) =>
      /\b(?:isLong|lengthOf|rounds)\b.* from "[./a-z]*\/length\.ts"/.test(
        readFileSync(join(TESTS, `${file}.test.ts`), "utf8"),
      ),
    );
  expect(asking.toSorted()).toEqual(files.filter((file) => !INDIRECT.has(file)).toSorted());
});

test("the README names each fault", () => {
  const readme = readFileSync(join(import.meta.dirname, "README.md"), "utf8");
  const faults = globSync("*.test.ts", { cwd: import.meta.dirname })
    .map((name) => name.replace(/\.test\.ts$/, ""))
    .filter((name) => name !== "lengths");
  expect(namesIn(readme).toSorted()).toEqual(faults.toSorted());
});
