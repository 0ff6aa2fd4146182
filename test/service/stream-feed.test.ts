import { afterEach, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { type DeliveryResult, STREAM_LIMITS, type StreamMessage } from "../../src/domain/stream.ts";
import type { ChangeStream } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { ResultRing, SharedPages } from "../../src/service/stream-pages.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { publishMany } from "../support/publish-many.ts";
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
        async list(query) {
          reads += 1;
          readsNow += 1;
          mostReadsNow = Math.max(mostReadsNow, readsNow);
          if (isFailing) throw new EvregError("unavailable", "The disk is gone.");
          try {
            return await store.events.list(query);
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

function publish({ evreg }: LocalService, count = 1): Promise<void> {
  return publishMany(evreg, count, { action: "a.b", payload: RawJson.fromText("{}") });
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

function rowidsOf(batches: readonly (readonly StreamMessage[])[]): readonly number[] {
  return batches.flat().flatMap(({ type, data }) => (type === "event" ? [data.rowid] : []));
}

function upTo(last: number): readonly number[] {
  return Array.from({ length: last }, (_, at) => at + 1);
}

test("those that catch up from places of their own leave the store to others in between", async () => {
  const service = await opened();
  await publish(service, 2_000);
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

test("pages that show nothing are not kept for long either", async () => {
  let asked = 0;
  const none = { events: [], ids: [], total: 0, isCut: false, removed: { event: 0, ms: 0 } };
  const list = ({ after = 0 }: { after?: number }) => {
    asked += 1;
    return Promise.resolve({ ...none, newest: after + 1 });
  };
  const pages = new SharedPages({ list }, new ResultRing(0), { data: "d", instance: "i" });
  const view = { topics: new Set(["events"] as const), action: "no.such", payloads: false, key: "no.such" };
  const pageAfter = (event: number) => pages.after({ view, position: { event, result: 0 } }, 1);
  await Promise.all(upTo(3_000).map(pageAfter));
  await pageAfter(3_000);
  expect(asked).toBe(3_000);
  await pageAfter(1);
  expect(asked).toBe(3_001);
});

test("nothing is read for one that has not taken what it got, and it has all in the end", async () => {
  const service = await opened();
  await publish(service, 2_000);
  const stream = await service.evreg.stream({ since: "0" });
  const batches = stream.batches()[Symbol.asyncIterator]();
  const taken: (readonly StreamMessage[])[] = [(await batches.next()).value!];
  const once = reads;
  const [other] = await live(service, 1);
  await publish(service, 500);
  await service.clock.advance(3_000);
  await until("the other to have all", () => rowidsOf(other!.batches).length === 500);
  expect(reads).toBeLessThanOrEqual(once + 6);
  while (taken.at(-1)?.[0]?.type !== "ready") taken.push((await batches.next()).value);
  expect(rowidsOf(taken)).toEqual(upTo(2_500));
  await stream.close();
  await other!.stream.close();
});

function resultOf(rowid: number): DeliveryResult {
  const names = { application: "crm", subscription: "mail", action: "a.b" };
  const attempt = { attempt: 1, status_code: 200, error_code: null, duration_ms: 1 };
  const timestamped = "2026-01-01T00:00:00.000Z";
  return { rowid, event_id: 1, subscription_id: 1, ...names, status: "delivered", ...attempt, timestamped };
}

test("many results come in pages, and to all of those that wait", async () => {
  const service = await opened();
  const topics = ["deliveries"] as const;
  const streams = await Promise.all(Array.from({ length: 3 }, () => service.evreg.stream({ topics })));
  const all = streams.map(gathering);
  // From here on they are at the same place.
  await until("all to be ready", () => all.every(({ batches }) => batches.length === 1));
  for (let rowid = 1; rowid <= 450; rowid += 1) service.service.feed.ended(resultOf(rowid));
  const pagesOf = (one: (typeof all)[number]) => one.batches.filter(([first]) => first?.type === "delivery");
  await until("all results", async () => {
    await service.clock.advance(1_000);
    return all.every((one) => pagesOf(one).flat().length === 450);
  });
  for (const page of all.flatMap(pagesOf)) expect(page.length).toBeLessThanOrEqual(200);
  expect(new Set(all.flatMap(pagesOf)).size).toBe(pagesOf(all[0]!).length);
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

test("only the last results are kept, and who has not got the others learns how many are missing", async () => {
  const { service, evreg, clock } = await opened();
  const stream = await evreg.stream({ topics: ["deliveries"] });
  const { id } = stream;
  await stream.close();
  for (let rowid = 1; rowid <= STREAM_LIMITS.results + 7; rowid += 1) service.feed.ended(resultOf(rowid));
  const late = await evreg.stream({ topics: ["deliveries"], since: id });
  const messages = late[Symbol.asyncIterator]();
  const complete_since = new Date(clock.now() + 1).toISOString();
  const gap = { reason: "overrun", topics: ["deliveries"], missed: 7, complete_since };
  expect((await messages.next()).value).toMatchObject({ type: "gap", data: gap });
  expect((await messages.next()).value).toMatchObject({ type: "delivery", data: { rowid: 8 } });
  await late.close();
});
