import { afterAll, beforeAll, expect, test } from "vitest";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { until } from "../support/until.ts";
import { startHarness, type Harness } from "./harness.ts";
import { RawConnection } from "./raw-connection.ts";

// What takes long of these is looking at the schema: some 100 ms each, in steps that let others in.
const branch = (index: number) => ({ properties: { [`p${index}`]: { pattern: `^a{${index + 1}}b*$` } } });
const LONG = { oneOf: Array.from({ length: 256 }, (_, index) => branch(index)) };

let harness: Harness;
/** What became of the calls that requests led to. */
let calls: { readonly name: string; readonly outcome: Promise<unknown>; readonly signal: AbortSignal }[] = [];

beforeAll(async () => {
  harness = await startHarness({
    around: ({ actions, subscriptions }) => ({
      actions: watched(actions),
      subscriptions: watched(subscriptions),
    }),
  });
});
afterAll(() => harness.close());

test("schemas are no longer checked for callers who left, and nothing is changed for them", async () => {
  const { owner } = harness;
  await owner.actions.create({ action: "a.b", application: "shop", schemata: { type: "object" } });
  const record = { application: "shop", action: "a.b", handler: "https://example.com/hook" };
  const { data: kept } = await owner.subscriptions.create({ ...record, subscription: "kept" });
  const token = await harness.token("admin");
  const leaving = new AbortController();
  const ask = (method: string, path: string, body: unknown): Promise<unknown> =>
    fetch(`${harness.url}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: leaving.signal,
    });
  calls = [];
  const asked = Promise.allSettled([
    ask("POST", "/actions/a.b/check", { schemata: LONG }),
    ask("POST", "/actions/a.b/check", { schemata: LONG }),
    ask("POST", "/actions", { action: "a.new", application: "shop", schemata: LONG }),
    ask("PUT", "/actions/a.b", { schemata: LONG }),
    ask("POST", "/subscriptions", { ...record, subscription: "new", filter: LONG }),
    ask("PUT", `/subscriptions/${kept.rowid}`, { filter: LONG }),
  ]);
  await until("all to be asked for", () => calls.length === 6);
  leaving.abort();
  await asked;
  for (const { name, outcome, signal } of calls) {
    await expect(outcome, name).rejects.toSatisfy((reason) => reason === signal.reason, name);
  }
  const lines = () => harness.log.filter(({ fields }) => fields["status"] !== undefined);
  await until("the requests' lines", () => lines().length === 6);
  expect(lines().map(({ level, fields }) => [level, fields["status"]])).toEqual(
    Array.from({ length: 6 }, () => ["info", 499]),
  );
  expect(await owner.actions.get("a.b")).toMatchObject({ data: { revision: 1 } });
  await expect(owner.actions.get("a.new")).rejects.toMatchObject({ code: "not_found" });
  const { data } = await owner.subscriptions.list();
  expect(data).toMatchObject([{ subscription: "kept", filter: null }]);
});

test.each([["together"], ["later"]])(
  "nothing is leased to a consumer that left, though it has sent another request %s",
  async (when) => {
    const { owner, port } = harness;
    await owner.actions.create({ action: `pulled.${when}`, application: "shop", schemata: {} });
    const record = { application: "shop", action: `pulled.${when}`, subscription: when };
    const { data: pulled } = await owner.subscriptions.create({ ...record, mode: "pull" });
    const consumers = async () => (await owner.subscriptions.get(pulled.rowid)).meta?.consumers;
    const headers = `host: a\r\nauthorization: Bearer ${await harness.token("admin")}`;
    const body = '{"wait_ms":20000}';
    const typed = `content-type: application/json\r\ncontent-length: ${body.length}`;
    const target = `/v1/subscriptions/${pulled.rowid}/claims`;
    const claim = `POST ${target} HTTP/1.1\r\n${headers}\r\n${typed}\r\n\r\n${body}`;
    const next = `GET /v1/events HTTP/1.1\r\n${headers}\r\n\r\n`;
    const raw = await RawConnection.open(port);
    raw.send(when === "together" ? claim + next : claim);
    await until("it to wait", async () => (await consumers()) === 1);
    if (when === "later") raw.send(next);
    raw.destroy();
    await until("it to be gone", async () => (await consumers()) === 0);
    await owner.events.publish({ action: record.action, payload: RawJson.fromText("{}") });
    expect((await owner.subscriptions.claim(pulled.rowid)).data).toHaveLength(1);
  },
);

/** The same port, whose calls are kept in `calls`. */
function watched<T extends Evreg["actions"] | Evreg["subscriptions"]>(port: T): T {
  const methods = Object.entries(port).map(([name, method]) => [
    name,
    (...args: unknown[]) => {
      const outcome = (method as (...all: unknown[]) => Promise<unknown>)(...args);
      calls.push({ name, outcome, signal: args.at(-1) as AbortSignal });
      return outcome;
    },
  ]);
  return Object.fromEntries(methods) as T;
}
