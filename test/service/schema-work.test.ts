import { beforeEach, expect, test } from "vitest";
import { Yielder, type Steps } from "../../src/runtime/yielding.ts";
import { type SchemaTurns, SchemaWork } from "../../src/service/schema-tasks.ts";

/** Tasks that were begun, each with what ends it. */
let begun: Map<string, () => void>;
let work: SchemaWork;
let turns: SchemaTurns;
const [somebody, another] = [{}, {}];

beforeEach(() => {
  begun = new Map();
  const walk = <T>(steps: Iterator<void, T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const { value } = steps.next();
      begun.set(String(value), () => (value === "bad" ? reject(new Error("bad")) : resolve(value as T)));
    });
  work = new SchemaWork({ run: walk });
  turns = work.for("check", somebody);
});

// oxlint-disable-next-line require-yield -- its one step is its last
function* task(name: string): Steps<string> {
  return name;
}

const turn = (): Promise<unknown> => new Promise(setImmediate);

async function end(name: string): Promise<void> {
  begun.get(name)!();
  begun.delete(name);
  await turn();
}

test("two are under way at a time, and the others come in the order of asking", async () => {
  const answers = ["a", "bad", "c", "d"].map((name) => turns.begin(task(name)));
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
  const later = [turns.begin(task("e")), turns.begin(task("f")), turns.begin(task("g"))];
  await turn();
  expect([...begun.keys()]).toEqual(["e", "f"]);
  for (const name of ["e", "f", "g"]) await end(name);
  expect(await Promise.all(later)).toEqual(["e", "f", "g"]);
});

test("with too many waiting nobody is let in, and those who are go on", async () => {
  const answers = Array.from({ length: 66 }, (_, index) => turns.begin(task(`${index}`)));
  await expect(turns.begin(task("one too many"))).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("try again"),
  });
  const further = turns.goOn(task("further"));
  for (let index = 0; index < 66; index++) {
    await turn();
    await end(`${index}`);
  }
  await end("further");
  expect(await further).toBe("further");
  expect(await Promise.all(answers)).toHaveLength(66);
});

/** Which of very many tasks have the first turns, where those of one kind come before those of the other. */
async function order(first: SchemaTurns, then: SchemaTurns): Promise<string[]> {
  const answers = [
    ...Array.from({ length: 66 }, (_, index) => first.begin(task(`first ${index}`))),
    ...Array.from({ length: 3 }, (_, index) => then.begin(task(`then ${index}`))),
  ];
  const seen: string[] = [];
  for (await turn(); begun.size > 0;) {
    const [name] = begun.keys();
    seen.push(name!);
    await end(name!);
  }
  expect(await Promise.all(answers)).toHaveLength(69);
  return seen.slice(0, 7);
}

test("changes have every second turn at least, however many checks wait, and the other way round", async () => {
  const changes = work.for("change", somebody);
  // Those that wait behind 64 of the other kind are not refused either.
  const some = ["first 0", "first 1", "then 0", "first 2", "then 1", "first 3", "then 2"];
  expect(await order(turns, changes)).toEqual(some);
  expect(await order(changes, turns)).toEqual(some);
});

test("callers take turns, and one that has asked for all it may keeps nobody out", async () => {
  const theirs = work.for("check", another);
  const some = ["first 0", "first 1", "first 2", "then 0", "first 3", "then 1", "first 4"];
  expect(await order(turns, theirs)).toEqual(some);
  // It makes no difference how many requests a caller asks by.
  const answers = [turns, work.for("check", somebody), turns].map((mine, index) =>
    mine.begin(task(`mine ${index}`)),
  );
  const further = turns.goOn(task("mine 3"));
  const their = theirs.begin(task("theirs"));
  await turn();
  await end("mine 0");
  await end("mine 1");
  expect([...begun.keys()]).toEqual(["mine 2", "theirs"]);
  await end("mine 2");
  await end("theirs");
  await end("mine 3");
  expect(await Promise.all([...answers, further, their])).toHaveLength(5);
});

test("what waits for a caller who goes leaves the line, and its place is another's", async () => {
  const answers = ["a", "b"].map((name) => turns.begin(task(name)));
  const gone = new AbortController();
  const theirs = work.for("check", somebody, gone.signal);
  const dropped = Promise.allSettled(Array.from({ length: 64 }, () => theirs.begin(task("dropped"))));
  await expect(turns.begin(task("too many"))).rejects.toMatchObject({ code: "unavailable" });
  gone.abort();
  for (const one of await dropped) expect(one).toMatchObject({ reason: gone.signal.reason });
  await expect(theirs.goOn(task("dropped"))).rejects.toBe(gone.signal.reason);
  const next = turns.begin(task("c"));
  await turn();
  await end("a");
  expect([...begun.keys()]).toEqual(["b", "c"]);
  await end("b");
  await end("c");
  expect(await Promise.all([...answers, next])).toEqual(["a", "b", "c"]);
});

test("what is under way for a caller who goes ends before its next step", async () => {
  const gone = new AbortController();
  let steps = 0;
  function* long(): Steps<void> {
    for (; steps < 100; steps++) {
      if (steps === 5) gone.abort();
      yield;
    }
  }
  const paced = new SchemaWork(new Yielder({ nowMs: () => 0, nextTurn: setImmediate }));
  await expect(paced.for("change", somebody, gone.signal).begin(long())).rejects.toBe(gone.signal.reason);
  expect(steps).toBe(5);
  expect(await paced.for("change", somebody).begin(task("after"))).toBe("after");
});
