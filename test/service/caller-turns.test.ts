import { beforeEach, expect, test } from "vitest";
import { CallerTurns } from "../../src/service/caller-turns.ts";

/** Works that were begun, each with what ends it. */
let started: Map<string, () => void>;
let turns: CallerTurns;
const somebody = {};

beforeEach(() => {
  started = new Map();
  turns = new CallerTurns({ atOnce: 4, maxWaiting: 64 });
});

function run(name: string, caller: object = somebody, signal?: AbortSignal): Promise<string> {
  const work = () =>
    new Promise<string>((resolve, reject) => {
      started.set(name, () => (name === "bad" ? reject(new Error("bad")) : resolve(name)));
    });
  return turns.run(caller, work, { signal });
}

async function end(name: string): Promise<void> {
  started.get(name)!();
  started.delete(name);
  await new Promise(setImmediate);
}

test("one work of a caller runs at a time, and its others wait in order", async () => {
  const settled = Promise.allSettled(["a", "bad", "c"].map((name) => run(name)));
  for (const name of ["a", "bad", "c"]) {
    expect([...started.keys()]).toEqual([name]);
    // One that fails makes room as well.
    await end(name);
  }
  expect((await settled).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a caller's work begins beside those of others, four in all", async () => {
  const answers = ["a", "b", "c", "d", "e"].flatMap((name) => {
    const caller = {};
    return [run(`${name}1`, caller), run(`${name}2`, caller)];
  });
  expect([...started.keys()]).toEqual(["a1", "b1", "c1", "d1"]);
  await end("a1");
  expect([...started.keys()]).toEqual(["b1", "c1", "d1", "a2"]);
  await end("a2");
  expect([...started.keys()]).toEqual(["b1", "c1", "d1", "e1"]);
  while (started.size > 0) await end([...started.keys()][0]!);
  expect(await Promise.all(answers)).toHaveLength(10);
});

test("with too many works waiting no more are accepted, and the accepted ones are done", async () => {
  const answers = Array.from({ length: 65 }, (_, index) => run(`${index}`));
  await expect(run("one too many")).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("try again"),
  });
  for (let index = 0; index < 65; index++) await end(`${index}`);
  expect(await Promise.all(answers)).toHaveLength(65);
});

test("the waiting work of a caller who leaves is removed, and its place is free", async () => {
  const first = run("a");
  const gone = new AbortController();
  const dropped = Promise.allSettled(Array.from({ length: 64 }, () => run("dropped", somebody, gone.signal)));
  await expect(run("too many")).rejects.toMatchObject({ code: "unavailable" });
  gone.abort();
  for (const one of await dropped) expect(one).toMatchObject({ reason: gone.signal.reason });
  await expect(run("dropped", somebody, gone.signal)).rejects.toBe(gone.signal.reason);
  const next = run("b");
  await end("a");
  expect([...started.keys()]).toEqual(["b"]);
  await end("b");
  expect(await Promise.all([first, next])).toEqual(["a", "b"]);
});

test("nobody waits for the running work of a caller who leaves, but who comes next", async () => {
  const gone = new AbortController();
  const left = run("a", somebody, gone.signal);
  const next = run("b");
  gone.abort();
  await expect(left).rejects.toBe(gone.signal.reason);
  expect([...started.keys()]).toEqual(["a"]);
  await end("a");
  await end("b");
  expect(await next).toBe("b");
});
