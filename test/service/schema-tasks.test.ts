import { beforeEach, expect, test } from "vitest";
import { Yielder, type Steps } from "../../src/runtime/yielding.ts";
import { SchemaTasks, type TaskRunner } from "../../src/service/schema-tasks.ts";

/** Tasks that were begun, each with what ends it. */
let started: Map<string, () => void>;
let tasks: SchemaTasks;
const somebody = {};

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
function requests(caller: object, signal?: AbortSignal): TaskRunner {
  return { run: (steps) => tasks.runnerFor(caller, signal).run(steps) };
}
const checks = requests(somebody);

const turn = (): Promise<unknown> => new Promise(setImmediate);

async function end(name: string): Promise<void> {
  started.get(name)!();
  started.delete(name);
  await turn();
}

test("one schema task of a caller runs at a time, and its others wait in order", async () => {
  const answers = ["a", "bad", "c"].map((name) => checks.run(task(name)));
  const settled = Promise.allSettled(answers);
  for (const name of ["a", "bad", "c"]) {
    await turn();
    expect([...started.keys()]).toEqual([name]);
    // One that fails makes room as well.
    await end(name);
  }
  expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const later = checks.run(task("d"));
  await turn();
  await end("d");
  expect(await later).toBe("d");
});

test("a caller's task begins beside those of others, four in all", async () => {
  const callers = ["a", "b", "c", "d", "e"].map((name) => ({ name, own: requests({ name }) }));
  const answers = callers.flatMap(({ name, own }) => [own.run(task(`${name}1`)), own.run(task(`${name}2`))]);
  await turn();
  expect([...started.keys()]).toEqual(["a1", "b1", "c1", "d1"]);
  await end("a1");
  expect([...started.keys()]).toEqual(["b1", "c1", "d1", "a2"]);
  await end("a2");
  expect([...started.keys()]).toEqual(["b1", "c1", "d1", "e1"]);
  for (await turn(); started.size > 0;) await end([...started.keys()][0]!);
  expect(await Promise.all(answers)).toHaveLength(10);
});

test("with too many waiting tasks no more are accepted, and the accepted ones continue", async () => {
  const admitted = tasks.runnerFor(somebody);
  const answers = Array.from({ length: 65 }, (_, index) => admitted.run(task(`${index}`)));
  await expect(checks.run(task("one too many"))).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("try again"),
  });
  const further = admitted.run(task("further"));
  for (let index = 0; index < 65; index++) {
    await turn();
    await end(`${index}`);
  }
  await end("further");
  expect(await further).toBe("further");
  expect(await Promise.all(answers)).toHaveLength(65);
});

test("the waiting task of a caller who leaves is removed, and its place is free", async () => {
  const first = checks.run(task("a"));
  const gone = new AbortController();
  const theirs = requests(somebody, gone.signal);
  const dropped = Promise.allSettled(Array.from({ length: 64 }, () => theirs.run(task("dropped"))));
  await expect(checks.run(task("too many"))).rejects.toMatchObject({ code: "unavailable" });
  gone.abort();
  for (const one of await dropped) expect(one).toMatchObject({ reason: gone.signal.reason });
  await expect(theirs.run(task("dropped"))).rejects.toBe(gone.signal.reason);
  const next = checks.run(task("b"));
  await turn();
  await end("a");
  expect([...started.keys()]).toEqual(["b"]);
  await end("b");
  expect(await Promise.all([first, next])).toEqual(["a", "b"]);
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
  const ended = paced.runnerFor(somebody, gone.signal).run(long());
  expect(await ended.catch((error: unknown) => error)).toBe(gone.signal.reason);
  expect(steps).toBe(5);
  expect(await paced.runnerFor(somebody).run(task("after"))).toBe("after");
});
