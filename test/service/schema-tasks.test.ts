import { beforeEach, expect, test } from "vitest";
import { Yielder, type Steps } from "../../src/runtime/yielding.ts";
import { SchemaTasks, type TaskRunner } from "../../src/service/schema-tasks.ts";

/** Tasks that were begun, each with what ends it. */
let started: Map<string, () => void>;
let tasks: SchemaTasks;
const [somebody, another] = [{}, {}];

beforeEach(() => {
  started = new Map();
  const walk = <T>(steps: Iterator<void, T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const { value } = steps.next();
      started.set(String(value), () => (value === "bad" ? reject(new Error("bad")) : resolve(value as T)));
    });
  tasks = new SchemaTasks({ run: walk });
});

// oxlint-disable-next-line require-yield -- its one step is its last
function* task(name: string): Steps<string> {
  return name;
}

/** A new request with each task. */
function requests(purpose: "change" | "check", caller: object, signal?: AbortSignal): TaskRunner {
  return { run: (steps) => tasks.runnerFor(purpose, caller, signal).run(steps) };
}
const checks = requests("check", somebody);

const turn = (): Promise<unknown> => new Promise(setImmediate);

async function end(name: string): Promise<void> {
  started.get(name)!();
  started.delete(name);
  await turn();
}

test("two schema tasks run at a time, and the others wait in order", async () => {
  const answers = ["a", "bad", "c", "d"].map((name) => checks.run(task(name)));
  const settled = Promise.allSettled(answers);
  await turn();
  expect([...started.keys()]).toEqual(["a", "bad"]);
  // One that fails makes room as well.
  await end("bad");
  expect([...started.keys()]).toEqual(["a", "c"]);
  await end("a");
  await end("c");
  await end("d");
  expect((await settled).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
  ]);
  const later = [checks.run(task("e")), checks.run(task("f")), checks.run(task("g"))];
  await turn();
  expect([...started.keys()]).toEqual(["e", "f"]);
  for (const name of ["e", "f", "g"]) await end(name);
  expect(await Promise.all(later)).toEqual(["e", "f", "g"]);
});

test("with too many waiting tasks no more are accepted, and the accepted ones continue", async () => {
  const admitted = tasks.runnerFor("check", somebody);
  const answers = Array.from({ length: 66 }, (_, index) => admitted.run(task(`${index}`)));
  await expect(checks.run(task("one too many"))).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("try again"),
  });
  const further = admitted.run(task("further"));
  for (let index = 0; index < 66; index++) {
    await turn();
    await end(`${index}`);
  }
  await end("further");
  expect(await further).toBe("further");
  expect(await Promise.all(answers)).toHaveLength(66);
});

/** Which of very many tasks have the first turns, where those of one kind come before those of the other. */
async function order(first: TaskRunner, then: TaskRunner): Promise<string[]> {
  const answers = [
    ...Array.from({ length: 66 }, (_, index) => first.run(task(`first ${index}`))),
    ...Array.from({ length: 3 }, (_, index) => then.run(task(`then ${index}`))),
  ];
  const seen: string[] = [];
  for (await turn(); started.size > 0;) {
    const [name] = started.keys();
    seen.push(name!);
    await end(name!);
  }
  expect(await Promise.all(answers)).toHaveLength(69);
  return seen.slice(0, 7);
}

test("changes and checks alternate, however many of either wait", async () => {
  const changes = requests("change", somebody);
  // Those that wait behind 64 of the other kind are not refused either.
  const some = ["first 0", "first 1", "then 0", "first 2", "then 1", "first 3", "then 2"];
  expect(await order(checks, changes)).toEqual(some);
  expect(await order(changes, checks)).toEqual(some);
});

test("callers are served in rotation, and one with the most tasks allowed keeps nobody out", async () => {
  const theirs = requests("check", another);
  const some = ["first 0", "first 1", "first 2", "then 0", "first 3", "then 1", "first 4"];
  expect(await order(checks, theirs)).toEqual(some);
  // It makes no difference how many requests a caller asks by.
  const one = tasks.runnerFor("check", somebody);
  const answers = [one, checks, one].map((mine, index) => mine.run(task(`mine ${index}`)));
  const further = one.run(task("mine 3"));
  const their = theirs.run(task("theirs"));
  await turn();
  await end("mine 0");
  await end("mine 1");
  expect([...started.keys()]).toEqual(["mine 2", "theirs"]);
  await end("mine 2");
  await end("theirs");
  await end("mine 3");
  expect(await Promise.all([...answers, further, their])).toHaveLength(5);
});

test("the waiting task of a caller who leaves is removed, and its place is free", async () => {
  const answers = ["a", "b"].map((name) => checks.run(task(name)));
  const gone = new AbortController();
  const theirs = requests("check", somebody, gone.signal);
  const dropped = Promise.allSettled(Array.from({ length: 64 }, () => theirs.run(task("dropped"))));
  await expect(checks.run(task("too many"))).rejects.toMatchObject({ code: "unavailable" });
  gone.abort();
  for (const one of await dropped) expect(one).toMatchObject({ reason: gone.signal.reason });
  await expect(theirs.run(task("dropped"))).rejects.toBe(gone.signal.reason);
  const next = checks.run(task("c"));
  await turn();
  await end("a");
  expect([...started.keys()]).toEqual(["b", "c"]);
  await end("b");
  await end("c");
  expect(await Promise.all([...answers, next])).toEqual(["a", "b", "c"]);
});

test("the running task of a caller who leaves ends before its next step", async () => {
  const gone = new AbortController();
  let steps = 0;
  function* long(): Steps<void> {
    for (; steps < 100; steps++) {
      if (steps === 5) gone.abort();
      yield;
    }
  }
  const paced = new SchemaTasks(new Yielder(() => 0, setImmediate));
  await expect(paced.runnerFor("change", somebody, gone.signal).run(long())).rejects.toBe(gone.signal.reason);
  expect(steps).toBe(5);
  expect(await paced.runnerFor("change", somebody).run(task("after"))).toBe("after");
});
