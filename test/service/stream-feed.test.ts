import { afterEach, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { StreamMessage } from "../../src/domain/stream.ts";
import type { ChangeStream } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { ChangeRing, type FeedChange } from "../../src/service/stream/view.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { until } from "../support/until.ts";

let local: LocalService | undefined;
afterEach(() => local?.close());

let reads = 0;
let readsNow = 0;
let mostReadsNow = 0;
let isFailing = false;

/** A service whose reads of new events are counted, and fail when the test says so. */
async function opened(): Promise<LocalService> {
  reads = readsNow = mostReadsNow = 0;
  isFailing = false;
  local = await openLocalService({
    around: (store) => ({
      ...store,
      events: {
        ...store.events,
        async next(query) {
          reads += 1;
          readsNow += 1;
          mostReadsNow = Math.max(mostReadsNow, readsNow);
          if (isFailing) throw new EvregError("unavailable", "The disk is gone.");
          try {
            return await store.events.next(query);
          } finally {
            readsNow -= 1;
          }
        },
      },
    }),
  });
  await local.evreg.actions.create({ action: "a.b", application: "crm", schemata: { type: "object" } });
  return local;
}

function publish({ evreg }: LocalService): Promise<unknown> {
  return evreg.events.publish({ action: "a.b", payload: RawJson.fromText("{}") });
}

/** Gathers the batches of a stream as they come. */
function gathering(stream: ChangeStream) {
  const batches: (readonly StreamMessage[])[] = [];
  const ended = (async () => {
    for await (const batch of stream.batches()) batches.push(batch);
  })();
  ended.catch(() => undefined);
  return { stream, batches, ended };
}

async function live(service: LocalService, count: number) {
  const streams = await Promise.all(Array.from({ length: count }, () => service.evreg.stream()));
  const all = streams.map(gathering);
  await until("all to be live", () => all.every(({ batches }) => batches.length > 0));
  await service.clock.advance(1_000);
  return all;
}

test("new events are read once for all that are live, and not at all while nobody is", async () => {
  const service = await opened();
  await publish(service);
  expect(reads).toBe(0);
  const all = await live(service, 50);
  const before = reads;
  await publish(service);
  await service.clock.advance(1_000);
  await until("the event", () => all.every(({ batches }) => batches.length === 2));
  // None more where one was under way already.
  const once = reads;
  expect(once).toBeLessThanOrEqual(before + 1);
  // Those that show the same have the same list, so that it is encoded once.
  expect(new Set(all.map(({ batches }) => batches[1])).size).toBe(1);
  for (const { stream } of all) await stream.close();
  await publish(service);
  await service.clock.advance(1_000);
  expect(reads).toBe(once);
});

/** Publishes so many at once. */
async function publishMany({ evreg }: LocalService, count: number): Promise<void> {
  const payload = RawJson.fromText("{}");
  for (let left = count; left > 0; left -= 500) {
    const items = Array.from({ length: Math.min(left, 500) }, () => ({ action: "a.b", payload }));
    await evreg.events.publishBatch(items);
  }
}

function rowidsOf(batches: readonly (readonly StreamMessage[])[]): readonly number[] {
  return batches.flat().flatMap(({ type, data }) => (type === "event" ? [data.rowid] : []));
}

function upTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, at) => at + 1);
}

test("those that catch up from places of their own leave the store to others in between", async () => {
  const service = await opened();
  await publishMany(service, 2_000);
  const streams = await Promise.all(
    Array.from({ length: 20 }, (_, at) => service.evreg.stream({ since: String(at * 7) })),
  );
  const all = streams.map(gathering);
  await until("all to have all", () => all.every(({ batches }) => batches.at(-1)?.[0]?.type === "ready"));
  for (const [at, { batches }] of all.entries()) expect(rowidsOf(batches)).toEqual(upTo(2_000).slice(at * 7));
  expect(mostReadsNow).toBe(1);
  for (const { stream } of all) await stream.close();
});

test("what was read long ago is not kept for others", async () => {
  const service = await opened();
  const payload = RawJson.fromText(JSON.stringify({ text: "x".repeat(16_000) }));
  await service.evreg.events.publishBatch(Array.from({ length: 200 }, () => ({ action: "a.b", payload })));
  const catchUp = async (): Promise<number> => {
    const before = reads;
    const one = gathering(await service.evreg.stream({ since: "0", payloads: true }));
    await until("all of it", () => one.batches.at(-1)?.[0]?.type === "ready");
    return reads - before;
  };
  // Both stay open, so nothing is forgotten because nobody reads.
  expect(await catchUp()).toBeGreaterThan(40);
  expect(await catchUp()).toBeGreaterThan(40);
});

test("nothing is read for one that has not taken what it got, and it has all in the end", async () => {
  const service = await opened();
  await publishMany(service, 2_000);
  const stream = await service.evreg.stream({ since: "0" });
  const batches = stream.batches()[Symbol.asyncIterator]();
  const taken: (readonly StreamMessage[])[] = [(await batches.next()).value!];
  const once = reads;
  const [other] = await live(service, 1);
  await publishMany(service, 500);
  await service.clock.advance(3_000);
  await until("the other to have all", () => rowidsOf(other!.batches).length === 500);
  expect(reads).toBeLessThanOrEqual(once + 6);
  while (taken.at(-1)?.[0]?.type !== "ready") taken.push((await batches.next()).value);
  expect(rowidsOf(taken)).toEqual(upTo(2_500));
  await stream.close();
  await other!.stream.close();
});

test("many changes come in pages, and to all of those that wait", async () => {
  const service = await opened();
  const topics = ["actions"] as const;
  const streams = await Promise.all(Array.from({ length: 3 }, () => service.evreg.stream({ topics })));
  const all = streams.map(gathering);
  // From here on they are at the same place.
  await until("all to be ready", () => all.every(({ batches }) => batches.length === 1));
  for (let count = 0; count < 450; count += 1) {
    await service.evreg.actions.update("a.b", { deprecated: count % 2 === 0 });
  }
  const changesOf = (one: (typeof all)[number]) =>
    one.batches.filter(([first]) => first?.type === "action").map(({ length }) => length);
  await until("all changes", async () => {
    await service.clock.advance(1_000);
    return all.every((one) => changesOf(one).reduce((sum, length) => sum + length, 0) === 450);
  });
  for (const one of all) expect(Math.max(...changesOf(one))).toBeLessThanOrEqual(200);
  const pages = new Set(all.flatMap(({ batches }) => batches.filter(([first]) => first?.type === "action")));
  expect(pages.size).toBe(changesOf(all[0]!).length);
  for (const { stream } of all) await stream.close();
});

test("a store that cannot be read ends the streams with what is wrong, and others begin after it", async () => {
  const service = await opened();
  const all = await live(service, 2);
  isFailing = true;
  await publish(service);
  await service.clock.advance(1_000);
  for (const { ended } of all) await expect(ended).rejects.toMatchObject({ code: "unavailable" });
  isFailing = false;
  const [again] = await live(service, 1);
  await publish(service);
  await service.clock.advance(1_000);
  await until("the event", () => again!.batches.length === 2);
  expect(again!.batches[1]).toMatchObject([{ type: "event", data: { rowid: 2 } }]);
  await again!.stream.close();
});

function changeOf(length: number): FeedChange {
  const data = { change: "changed", record: { text: "x".repeat(length) } };
  return { topic: "actions", data } as unknown as FeedChange;
}

test("large changes leave room for few in memory, and for one at least", () => {
  const ring = new ChangeRing(0, { changes: 100, changeBytes: 10_000 });
  const kept = () => ring.between(0, ring.last).length;
  for (let count = 0; count < 10; count += 1) ring.add(changeOf(2_000), count);
  expect(kept()).toBe(2);
  ring.add(changeOf(20_000), 11);
  expect(kept()).toBe(1);
  ring.add(changeOf(1), 12);
  expect(kept()).toBe(1);
});
