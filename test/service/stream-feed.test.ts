import { afterEach, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { StreamMessage } from "../../src/domain/stream.ts";
import type { ChangeStream } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { until } from "../support/until.ts";

let local: LocalService | undefined;
afterEach(() => local?.close());

let reads = 0;
let isFailing = false;

/** A service whose reads of new events are counted, and fail when the test says so. */
async function opened(): Promise<LocalService> {
  reads = 0;
  isFailing = false;
  local = await openLocalService({
    around: (store) => ({
      ...store,
      events: {
        ...store.events,
        next(query) {
          reads += 1;
          if (isFailing) return Promise.reject(new EvregError("unavailable", "The disk is gone."));
          return store.events.next(query);
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

test("many events that come one after the other are read together", async () => {
  const service = await opened();
  const [one] = await live(service, 1);
  const before = reads;
  for (let count = 0; count < 20; count += 1) await publish(service);
  const shown = () => one!.batches.flat().filter(({ type }) => type === "event");
  await until("all of them", async () => {
    await service.clock.advance(10);
    return shown().length === 20;
  });
  expect(reads).toBeLessThanOrEqual(before + 3);
  await one!.stream.close();
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
