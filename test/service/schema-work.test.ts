import { beforeEach, expect, test } from "vitest";
import { SchemaWork } from "../../src/service/schema-work.ts";
import type { Task } from "../../src/schema/task.ts";

/** Tasks that were begun, each with what ends it. */
let begun: Map<string, () => void>;
let work: SchemaWork;

beforeEach(() => {
  begun = new Map();
  const walk = <T>(steps: Iterator<void, T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const { value } = steps.next();
      begun.set(String(value), () => (value === "bad" ? reject(new Error("bad")) : resolve(value as T)));
    });
  work = new SchemaWork({ walk });
});

// oxlint-disable-next-line require-yield -- its one step is its last
function* task(name: string): Task<string> {
  return name;
}

const turn = (): Promise<unknown> => new Promise(setImmediate);

async function end(name: string): Promise<void> {
  begun.get(name)!();
  begun.delete(name);
  await turn();
}

test("two are under way at a time, and the others come in the order of asking", async () => {
  const answers = ["a", "bad", "c", "d"].map((name) => work.begin(task(name)));
  const settled = Promise.allSettled(answers);
  await turn();
  expect([...begun.keys()]).toEqual(["a", "bad"]);
  // One that fails makes room as well.
  await end("bad");
  expect([...begun.keys()]).toEqual(["a", "c"]);
  await end("a");
  await end("c");
  await end("d");
  expect((await settled).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
  const later = [work.begin(task("e")), work.begin(task("f")), work.begin(task("g"))];
  await turn();
  expect([...begun.keys()]).toEqual(["e", "f"]);
  for (const name of ["e", "f", "g"]) await end(name);
  expect(await Promise.all(later)).toEqual(["e", "f", "g"]);
});

test("with too many waiting nobody is let in, and those who are go on", async () => {
  const answers = Array.from({ length: 66 }, (_, index) => work.begin(task(`${index}`)));
  await expect(work.begin(task("one too many"))).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("try again"),
  });
  const further = work.goOn(task("further"));
  for (let index = 0; index < 66; index++) {
    await turn();
    await end(`${index}`);
  }
  await end("further");
  expect(await further).toBe("further");
  expect(await Promise.all(answers)).toHaveLength(66);
});
