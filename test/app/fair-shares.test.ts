import { expect, test } from "vitest";
import type { RunningServer } from "../../src/app/server.ts";
import { SEARCH_LIMITS } from "../../src/domain/event.ts";
import { readTokenFile } from "../../src/runtime/find-server.ts";
import { dataFolder, start } from "./setup.ts";

// One token takes all that it can get, over the network, and another goes on as if it were alone.

interface Server {
  readonly get: (
    token: string,
    path: string,
    signal?: AbortSignal,
  ) => Promise<{ status: number; body: string }>;
  /** A token that reads. */
  readonly token: (name: string) => Promise<string>;
}

async function serverWith(count: number, payload: object): Promise<Server> {
  const data = dataFolder();
  const { url }: RunningServer = await start(data);
  const admin = readTokenFile(data)!;
  const ask = async (token: string, path: string, signal?: AbortSignal, body?: object) => {
    const response = await fetch(`${url}${path}`, {
      signal: signal ?? null,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.text() };
  };
  const made = async (path: string, body: object): Promise<{ data: { token: string } }> => {
    const { status, body: text } = await ask(admin, path, undefined, body);
    if (status !== 201) throw new Error(text);
    return JSON.parse(text) as { data: { token: string } };
  };
  await made("/v1/actions", { action: "a.b", application: "shop", schemata: { type: "object" } });
  for (let left = count; left > 0; left -= 1_000) {
    const events = Array.from({ length: Math.min(left, 1_000) }, () => ({ action: "a.b", payload }));
    await made("/v1/events/batch", { events });
  }
  const token = async (name: string): Promise<string> =>
    (await made("/v1/tokens", { name, scopes: ["read"] })).data.token;
  return { get: ask, token };
}

const searchFor = (where: object): string => `/v1/events?where=${encodeURIComponent(JSON.stringify(where))}`;

test("the lists of another are left alone by eight searches of one token, and by one of each of twelve tokens", async () => {
  const { get, token } = await serverWith(5_000, { n: 1, country: "FR" });
  const other = await token("other");
  const path = searchFor({ properties: { n: { minimum: 1e9 } }, required: ["n"] });
  for (const [tokens, each] of [
    [1, 8],
    [12, 1],
  ] as const) {
    const ending = new AbortController();
    const searched: number[] = [];
    const search = async (attacker: string): Promise<void> => {
      while (!ending.signal.aborted) searched.push((await get(attacker, path, ending.signal)).status);
    };
    const searching: Promise<void>[] = [];
    for (let count = 0; count < tokens; count += 1) {
      const attacker = await token(`attacker ${tokens} ${count}`);
      for (let loop = 0; loop < each; loop += 1) searching.push(search(attacker));
    }
    const listed: number[] = [];
    // One search at least is answered while the others wait.
    while (listed.length < 30 || searched.length === 0) {
      const lists = ["/v1/actions", "/v1/events", "/v1/subscriptions"].map((list) => get(other, list));
      listed.push(...(await Promise.all(lists)).map(({ status }) => status));
    }
    ending.abort();
    await Promise.allSettled(searching);
    expect(new Set(listed)).toEqual(new Set([200]));
    expect(searched).toContain(200);
  }
}, 120_000);

/** 1.1 KB that lead to 2^14 branches for each event. */
function nested(levels: number): object {
  const definitions: Record<string, object> = { [`d${levels}`]: { required: ["absent"] } };
  for (let level = 0; level < levels; level += 1) {
    const next = { $ref: `#/definitions/d${level + 1}` };
    definitions[`d${level}`] = { anyOf: [next, next] };
  }
  return { $ref: "#/definitions/d0", definitions };
}

test("a search of very many branches ends when its time is over, and another is not kept waiting", async () => {
  const { get, token } = await serverWith(500, { n: 1 });
  const [attacker, other] = [await token("attacker"), await token("other")];
  const costly = (async () => {
    for (;;) {
      const startedMs = performance.now();
      const answer = await get(attacker, searchFor(nested(14)));
      // On a busy machine it may have decided on no event in its time, and is to be tried again.
      if (answer.status !== 503) return { ...answer, tookMs: performance.now() - startedMs };
    }
  })();
  const simple = await get(other, searchFor({ required: ["n"] }));
  expect(simple.status).toBe(200);
  const { status, body, tookMs } = await costly;
  const { meta } = JSON.parse(body) as { meta: { searched: number; next: number; total: number } };
  expect({ status, total: meta.total }).toEqual({ status: 200, total: 500 });
  // Without an end the first page alone would take more than ten seconds.
  expect(meta.searched).toBeGreaterThan(0);
  expect(meta.searched).toBeLessThan(250);
  expect(meta.next).toBe(501 - meta.searched);
  expect(tookMs).toBeLessThan(3 * SEARCH_LIMITS.searchMs);
}, 120_000);
