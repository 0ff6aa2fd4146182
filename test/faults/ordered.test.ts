import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { fileSql } from "../support/file-sql.ts";
import { launchProgram, startProgram } from "../support/program.ts";
import type { ReceivedRequest } from "../support/receiver.ts";
import { create, finish, publish, useFault } from "./fault.ts";
import { inLongForm, lengthOf, report } from "./length.ts";

// The promise under test: an ordered subscription's handler never gets an event after a later one, however often either of
// the two sides fails, and where it blocks, none before the one before was taken. Half of them are keys of two subscriptions
// that are ordered by key, and to all actions beneath a name.

const { kills: leastKills, subscriptions: KEYS, "events each": events } = lengthOf("faults/ordered");
/** The last ones skip what fails twice; the others block. */
const SKIPPING = Math.floor(KEYS / 4);
const LONGEST_MS = 700;
const ENDING_MS = 600_000;

interface Seen {
  readonly event: number;
  readonly isTaken: boolean;
}

/** By key, in the order in which they came. */
const seen = Array.from({ length: KEYS }, (): Seen[] => []);

const fault = useFault((count, request) => {
  const answer = answerTo(count);
  const { payload } = JSON.parse(request.body.toString()) as { payload: { filler: string } };
  const key = Number(payload.filler);
  seen[key]!.push({
    event: eventOf(request),
    isTaken: typeof answer === "object" && !("status" in answer),
  });
  return answer;
});
const { path, ledger } = fault;

/** The first retry comes at once, and further ones after two seconds and more: so few fail twice. */
function answerTo(count: number): object | "reset" {
  if (Math.random() > (count === 1 ? 0.15 : 0.05)) return {};
  const chance = Math.random();
  if (chance < 0.3) return "reset";
  return { status: chance < 0.6 ? 500 : 503 };
}

function eventOf({ headers }: ReceivedRequest): number {
  return Number((headers["x-evreg-delivery"] ?? "").split("_")[0]);
}

const afterRetries = (key: number) => (key < KEYS - SKIPPING ? "block" : "skip");
const isShared = (key: number): boolean => key % 2 === 1;

function actionOf(key: number): string {
  return isShared(key) ? `shared.${afterRetries(key)}.n${key}` : `key.n${key}`;
}

async function registerKey(url: string, key: number): Promise<void> {
  const action = actionOf(key);
  await create(`${url}/v1/actions`, { action, application: "load", schemata: { type: "object" } });
  if (!isShared(key)) await subscribe(url, { action, ordered: true, on_exhausted: afterRetries(key) });
}

async function registerShared(url: string): Promise<void> {
  for (const on_exhausted of ["block", "skip"]) {
    const ordered = { key: "/filler" };
    await subscribe(url, { action: `shared.${on_exhausted}.*`, ordered, on_exhausted });
  }
}

function subscribe(url: string, given: object): Promise<void> {
  const named = { application: "load", subscription: "ordered", handler: fault.receiver.url, max_retries: 1 };
  return create(`${url}/v1/subscriptions`, { ...named, ...given });
}

/** One after the other; those whose answer does not come may be stored or not. */
async function publishKey(url: string, key: number, count: number): Promise<void> {
  for (let one = 0; one < count; one += 1) {
    if ((await publish(url, ledger, String(key), actionOf(key))) === undefined) return;
  }
}

function publishAll(url: string, count: number): Promise<unknown> {
  return Promise.all(Array.from({ length: KEYS }, (_, key) => publishKey(url, key, count)));
}

/** The events of each key, in the order of their publication. */
function stored(): readonly (readonly number[])[] {
  const text = `SELECT a.action AS action, e.rowid AS id FROM event AS e JOIN action AS a ON a.rowid = e.action_id
    ORDER BY e.rowid`;
  const rows = fileSql(join(path, "evreg.db"), text) as { action: string; id: number }[];
  return seen.map((_, key) => rows.filter(({ action }) => action === actionOf(key)).map(({ id }) => id));
}

/** Deliveries that were neither taken nor, where that is to be, skipped. */
function unskipped(): readonly unknown[] {
  const text = `SELECT d.event_id, d.state FROM delivery AS d JOIN subscription AS s ON s.rowid = d.subscription_id
    WHERE d.state <> 2 AND NOT (d.state = 3 AND d.failures = 2 AND s.settings ->> 'on_exhausted' = 'skip')`;
  return fileSql(join(path, "evreg.db"), text);
}

/** Requests for an event after one for a later event. */
function inversions(requests: readonly Seen[]): number {
  let latest = 0;
  return requests.filter(({ event }) => {
    latest = Math.max(latest, event);
    return event < latest;
  }).length;
}

/** First requests for an event before the one before it was taken. */
function tooEarly(requests: readonly Seen[]): number {
  let last: Seen | undefined;
  return requests.filter((request) => {
    const isEarly = last !== undefined && last.event !== request.event && !last.isTaken;
    // Sent again as its end was not stored: it was taken all the same.
    const wasTaken = last?.event === request.event && last.isTaken;
    last = wasTaken ? { ...request, isTaken: true } : request;
    return isEarly;
  }).length;
}

inLongForm(
  `after kill -9 with ${KEYS} ordered subscriptions of ${events} events each, none comes after a later one`,
  { timeout: 2 * ENDING_MS },
  async () => {
    const first = await startProgram(path, ["--dev"]);
    for (let key = 0; key < KEYS; key += 1) await registerKey(first.url, key);
    await registerShared(first.url);
    await publishAll(first.url, Math.ceil(events / 2));
    await first.end("SIGKILL");
    let kills = 1;
    for (; kills < leastKills; kills += 1) {
      const server = launchProgram(path, ["--dev"]);
      const url = await server.ready;
      const publishing = publishAll(url, Math.ceil(events / leastKills));
      await pause(Math.random() * LONGEST_MS);
      await Promise.all([publishing, server.end("SIGKILL")]);
    }
    const last = await startProgram(path, ["--dev"]);
    const missing = events - Math.floor(ledger.acknowledged / KEYS);
    if (missing > 0) await publishAll(last.url, missing);
    await finish(last, ENDING_MS);

    const balance = ledger.expectWhole(path, { undelivered: expect.any(Number), refused: 0 });
    expect(unskipped()).toEqual([]);
    expect(seen.map((requests) => [...new Set(requests.map(({ event }) => event))])).toEqual(stored());
    const figures = {
      inversions: seen.reduce((sum, requests) => sum + inversions(requests), 0),
      tooEarly: seen.slice(0, KEYS - SKIPPING).reduce((sum, requests) => sum + tooEarly(requests), 0),
    };
    expect(figures).toEqual({ inversions: 0, tooEarly: 0 });
    expect(balance.acknowledged).toBeGreaterThanOrEqual(KEYS * (events - 1));
    expect(balance.repeated).toBeGreaterThan(KEYS);
    report("ordered", { keys: KEYS, kills, ...figures, ...balance });
  },
);
