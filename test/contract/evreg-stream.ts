import { afterEach, describe, expect, it } from "vitest";
import type { Event } from "../../src/domain/event.ts";
import type { StreamMessage, StreamQuery } from "../../src/domain/stream.ts";
import type { ChangeStream, Evreg } from "../../src/evreg.ts";
import { until } from "../support/until.ts";
import {
  ANY_OBJECT,
  type EvregUnderTest,
  newAction,
  newEvent,
  type OpenEvreg,
  publish,
  rawEvent,
  refusal,
  subscribe,
  useEvreg,
} from "./harness.ts";

/** Longer than the pause between two reads for all streams. */
const PAUSE_MS = 200;

/** Reads one message after the other, with the service's clock moved on while it waits. */
class Watch {
  readonly #under: EvregUnderTest;
  readonly #stream: ChangeStream;
  readonly #messages: AsyncIterator<StreamMessage>;

  constructor(under: EvregUnderTest, stream: ChangeStream) {
    this.#under = under;
    this.#stream = stream;
    this.#messages = stream[Symbol.asyncIterator]();
  }

  get id(): string {
    return this.#stream.id;
  }

  async next(): Promise<StreamMessage> {
    const came: IteratorResult<StreamMessage>[] = [];
    const waiting = this.#messages.next().then((result) => came.push(result));
    await until("a message", async () => {
      await this.#under.clock.advance(PAUSE_MS);
      return came.length > 0;
    });
    await waiting;
    const { value, done } = came[0]!;
    if (done === true) throw new Error("the stream ended");
    return value;
  }

  /** The messages up to the one of this type, without it. */
  async until(type: StreamMessage["type"]): Promise<readonly StreamMessage[]> {
    const before: StreamMessage[] = [];
    for (;;) {
      const message = await this.next();
      if (message.type === type) return before;
      before.push(message);
    }
  }

  /** The rowids of the next events, of which there are so many. */
  async rowids(count: number): Promise<readonly number[]> {
    const found: number[] = [];
    while (found.length < count) {
      const message = await this.next();
      if (message.type === "event") found.push(message.data.rowid);
    }
    return found;
  }
}

export function streamContract(open: OpenEvreg): void {
  describe("streams", () => {
    const under = useEvreg(open, async ({ evreg }) => {
      await evreg.actions.create(newAction());
      await evreg.actions.create(
        newAction({ action: "order.created", application: "shop", schemata: ANY_OBJECT }),
      );
    });
    let streams: ChangeStream[] = [];
    afterEach(async () => {
      for (const stream of streams) await stream.close();
      streams = [];
    });

    async function watching(query: StreamQuery, evreg = under.evreg): Promise<Watch> {
      const stream = await evreg.stream(query);
      streams.push(stream);
      return new Watch(under, stream);
    }

    /** Has everything that was there. */
    async function following(query: StreamQuery, evreg?: Evreg): Promise<Watch> {
      const watch = await watching(query, evreg);
      await watch.until("ready");
      return watch;
    }

    it("shows events as they are published, after it has said that it is ready", async () => {
      await publish(under.evreg);
      const watch = await watching({});
      expect(await watch.next()).toMatchObject({ type: "ready", data: {} });
      const event = await publish(under.evreg);
      const message = await watch.next();
      const { payload: _, ...shown } = event;
      expect(message).toEqual({
        type: "event",
        id: expect.any(String),
        data: { ...shown, application: "crm" },
      });
    });

    it("begins at an event, at a time, so long ago, or after a message, and goes on with what comes", async () => {
      const { clock, evreg } = under;
      const first = await publish(evreg);
      await clock.advance(3_600_000);
      const second = await publish(evreg);
      await clock.advance(60_000);
      for (const since of ["0", String(first.rowid), "2026-01-01T00:30:00Z", "30m"]) {
        const watch = await watching({ since });
        const before = (await watch.until("ready")).map(({ data }) => ("rowid" in data ? data.rowid : data));
        expect(before, since).toEqual(since === "0" ? [first.rowid, second.rowid] : [second.rowid]);
      }
      const watch = await watching({ since: "1d" });
      expect((await watch.next()).data).toMatchObject({ rowid: first.rowid });
      const again = await watching({ since: watch.id });
      const third = await publish(evreg);
      expect(await again.rowids(2)).toEqual([second.rowid, third.rowid]);
    });

    it("goes on after what it showed nothing of", async () => {
      const watch = await following({ action: "user.created" });
      await publish(under.evreg, newEvent({}, "order.created"));
      const event = await publish(under.evreg);
      expect(await watch.rowids(1)).toEqual([event.rowid]);
      const again = await watching({ since: watch.id });
      expect(await again.until("ready")).toEqual([]);
    });

    it("shows payloads byte for byte, whatever is between their members", async () => {
      const texts = [
        '{ "a":1,\n\n  "b":  2 }',
        '{"a":1,\r\n"b":2}',
        '{"a":1,\r"b":\r\r\n2}',
        '{\n"a"\t:\t1e5,"b":"\u2028\u2029\u0085 \\r\\n é \u{1f600}"}\n'.trim(),
        '{"a":"data: x","n":123456789012345678901234567890}',
      ];
      const watch = await following({ payloads: true });
      for (const text of texts) await publish(under.evreg, rawEvent(text, "order.created"));
      for (const text of texts) {
        const message = await watch.next();
        expect(message.type === "event" && message.data.payload?.text()).toBe(text);
        expect(message.data).not.toHaveProperty("payload_base64");
      }
    });

    it("shows what the query asks for, and what the caller may read", async () => {
      const reader = await under.as(["read:shop"]);
      const all = await following({});
      const own = await following({}, reader);
      const filtered = await following({ application: "crm", action: "user.created" });
      await following({ application: "crm", since: "0" }, reader);
      const user = await publish(under.evreg);
      const order = await publish(under.evreg, newEvent({}, "order.created"));
      const last = await publish(under.evreg);
      expect(await all.rowids(3)).toEqual([user.rowid, order.rowid, last.rowid]);
      expect(await own.rowids(1)).toEqual([order.rowid]);
      expect(await filtered.rowids(2)).toEqual([user.rowid, last.rowid]);
    });

    it("shows every event once and in order to those who begin while many are published", async () => {
      const items = Array.from({ length: 700 }, (_, n) => newEvent({ n }, "order.created"));
      const before = await under.evreg.events.publishBatch(items);
      const expected = before.data.map((event) => event!.rowid);
      const early = await watching({ since: "0" });
      const [publishing, late] = await Promise.all([
        under.evreg.events.publishBatch(items),
        watching({ since: "0" }),
      ]);
      expected.push(...publishing.data.map((event) => event!.rowid));
      expect(await early.rowids(1_400)).toEqual(expected);
      expect(await late.rowids(1_400)).toEqual(expected);
    });

    it("shows what became of deliveries, and goes on with that after a message, and at a time", async () => {
      const { evreg } = under;
      const topics = ["deliveries"] as const;
      const names = { application: "crm", subscription: "mail", action: "user.created" };
      const { rowid: id } = (await evreg.subscriptions.create({ ...names, mode: "pull" })).data;
      const delivered = async (): Promise<number> => {
        await publish(evreg);
        const [taken] = (await evreg.subscriptions.claim(id)).data;
        await evreg.subscriptions.finish(id, { results: [{ lease: taken!.lease, outcome: "delivered" }] });
        return taken!.delivery_id;
      };
      const watch = await following({ topics });
      const first = await delivered();
      expect((await watch.next()).data).toMatchObject({ rowid: first, subscription_id: id, attempt: 1 });
      const { id: place } = watch;
      const second = await delivered();
      for (const since of [place, new Date(under.clock.now()).toISOString()]) {
        const again = await watching({ topics, since });
        const rowids = (await again.until("ready")).map(({ data }) => "rowid" in data && data.rowid);
        expect(rowids).toEqual([second]);
      }
      const early = await watching({ topics: ["events", "deliveries"], since: "1h" });
      expect(await early.next()).toMatchObject({
        type: "gap",
        data: { reason: "overrun", topics, missed: null, complete_since: "2026-01-01T00:00:00.000Z" },
      });
    });

    it("says that the id of other data or of an earlier start does not lead to all changes", async () => {
      const topics = ["events", "deliveries"] as const;
      const watch = await following({ topics });
      const [data = "", event = "", , change = ""] = watch.id.split("_");
      const gaps = {
        [`${data}_${event}_zzzz_${change}`]: { reason: "restart", topics: ["deliveries"], missed: null },
        [`zzzz_${event}_zzzz_${change}`]: { reason: "other_data", topics: [...topics] },
      };
      for (const [since, gap] of Object.entries(gaps)) {
        const again = await watching({ topics, since });
        expect(await again.next()).toMatchObject({ type: "gap", data: gap });
        expect(await again.next()).toMatchObject({ type: "ready" });
      }
    });

    it("says that events after its place were removed, and only then", async () => {
      const { evreg, store, clock } = under;
      const watch = await following({});
      // What is held for a subscription stays.
      const subscription = await subscribe(evreg);
      const held = await publish(evreg);
      await evreg.subscriptions.update(subscription.rowid, { active: false });
      const ids = new Map<number, string>();
      const order = async (): Promise<Event> => {
        await clock.advance(1_000);
        const event = await publish(evreg, newEvent({}, "order.created"));
        await watch.rowids(1);
        ids.set(event.rowid, watch.id);
        return event;
      };
      await watch.rowids(1);
      const [first, second] = [await order(), await order()];
      const betweenMs = clock.now() + 500;
      const last = await order();
      await store.events.removeExpired({ beforeMs: betweenMs });

      const [, place = ""] = ids.get(first.rowid)!.split("_");
      const [, end = ""] = ids.get(second.rowid)!.split("_");
      const between = new Date(betweenMs).toISOString();
      const cases: readonly (readonly [since: string, gaps: readonly string[], rowids: readonly number[]])[] =
        [
          ["0", ["expired"], [held.rowid, last.rowid]],
          [String(first.rowid), ["expired"], [last.rowid]],
          [ids.get(first.rowid)!, ["expired"], [last.rowid]],
          [held.timestamped, ["expired"], [held.rowid, last.rowid]],
          [second.timestamped, ["expired"], [last.rowid]],
          [`zzzz_${place}`, ["other_data", "expired"], [last.rowid]],
          [`zzzz_${end}`, ["other_data"], [last.rowid]],
          [String(second.rowid), [], [last.rowid]],
          [ids.get(second.rowid)!, [], [last.rowid]],
          [between, [], [last.rowid]],
          [last.timestamped, [], [last.rowid]],
          [ids.get(last.rowid)!, [], []],
          [String(last.rowid + 1_000), [], []],
        ];
      for (const [since, gaps, rowids] of cases) {
        const again = await watching({ since });
        const messages = await again.until("ready");
        expect([
          messages.flatMap(({ type, data }) => (type === "gap" ? [data.reason] : [])),
          messages.flatMap(({ type, data }) => (type === "event" ? [data.rowid] : [])),
          since,
        ]).toEqual([gaps, rowids, since]);
      }
      const filtered = await watching({ since: String(first.rowid), action: "user.created" });
      expect(await filtered.next()).toMatchObject({
        type: "gap",
        data: { reason: "expired", topics: ["events"], missed: null, complete_since: null },
      });
    });

    it("shows the actions of a pattern", async () => {
      const watch = await following({ action: "order.*" });
      await publish(under.evreg);
      const order = await publish(under.evreg, newEvent({}, "order.created"));
      expect(await watch.rowids(1)).toEqual([order.rowid]);
      const past = await watching({ action: "order.*", since: "0" });
      expect(await past.rowids(1)).toEqual([order.rowid]);
    });

    it("ends when its caller wants no more", async () => {
      const ending = new AbortController();
      const stream = await under.evreg.stream({ since: "0" }, { signal: ending.signal });
      const types: string[] = [];
      for await (const message of stream) {
        types.push(message.type);
        ending.abort();
      }
      expect(types).toEqual(["ready"]);
    });

    it("takes half of all places for one caller, and one more when another has ended", async () => {
      await Promise.all(Array.from({ length: 100 }, () => watching({})));
      await refusal(under.evreg.stream({}), "rate_limited");
      await streams[0]!.close();
      while ((await watching({}).catch(() => undefined)) === undefined) continue;
    });
  });
}
