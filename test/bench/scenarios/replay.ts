import { setTimeout as pause } from "node:timers/promises";
import type { Replay } from "../../../src/domain/replay.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import { arrivalTimes } from "../arrivals.ts";
import { startChild } from "../child.ts";
import type { FillCalls } from "../fill.ts";
import { besideRow } from "../beside.ts";
import type { LatencySummary } from "../latencies.ts";
import { register } from "../registry.ts";
import type { Rig } from "../rig.ts";
import type { Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import { DELIVERED_ACTION, WAITING_ACTION } from "../workload.ts";

const REPLAYED_EVENTS = 100_000;
const RATE_PER_S = 100;
const DURATION_MS = 3_000;
const WARM_UP_MS = 300;
const FIRST_WARM_UP_MS = 1_500;
const TARGET = 2;

/** Whose live deliveries are looked at: those of another subscription, or of the very one that is sent its past. */
const LIVE = [
  ["another's", DELIVERED_ACTION, "orders"],
  ["its own", WAITING_ACTION, "replayed"],
] as const;

export const replay: Scenario = {
  name: "replay",
  summary: "Live deliveries while 100,000 events of the past are sent again.",
  async run(rig) {
    const server = await serverWithPast(rig);
    const subscription = await subscriptionTo(server, WAITING_ACTION);
    const rows: Row[] = [];
    for (const [whose, action, path] of LIVE) {
      const alones: LatencySummary[] = [];
      const besides: LatencySummary[] = [];
      for (let round = 0; round < rig.options.rounds; round += 1) {
        const live = () =>
          arrivalTimes(rig, {
            port: server.port,
            token: server.token,
            action,
            path: `/fast/${path}`,
            ratePerS: RATE_PER_S,
            warmUpMs: round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS,
            durationMs: DURATION_MS,
          });
        rig.options.say(`replay, round ${round + 1}: alone`);
        alones.push(await live());
        rig.options.say(`replay, round ${round + 1}: beside a replay, live deliveries ${whose}`);
        const started = await startReplay(server, subscription);
        besides.push(await rig.observe("replay", whose, server, live));
        await cancelReplay(rig, server, started);
      }
      rows.push(besideRow(`replay, p99 of ${whose}`, { alones, besides }, TARGET));
    }
    await rig.retire("replay", "both", server);
    return rows;
  },
};

/** With events of the past that nobody was sent. */
async function serverWithPast(rig: Rig): Promise<BenchServer> {
  rig.options.say("replay: filling");
  const place = rig.newPlace();
  const filler = startChild<FillCalls>("fill.ts");
  const filling = {
    folder: place.folder,
    action: WAITING_ACTION,
    subscriptions: [],
    events: REPLAYED_EVENTS,
  };
  await filler.call("fill", filling);
  await filler.end("SIGTERM");
  const server = await startServer(place);
  await register(server, await rig.handler("fast", "orders"));
  await server.api("POST", "/v1/subscriptions", {
    application: "billing",
    subscription: "replayed",
    action: WAITING_ACTION,
    handler: await rig.handler("fast", "replayed"),
  });
  return server;
}

async function subscriptionTo(server: BenchServer, action: string): Promise<number> {
  const { data } = await server.api<{ data: Subscription[] }>("GET", `/v1/subscriptions?action=${action}`);
  return data[0]!.rowid;
}

/** Resolves once it is under way. */
async function startReplay(server: BenchServer, subscription: number): Promise<number> {
  const { data } = await server.api<{ data: Replay }>("POST", `/v1/subscriptions/${subscription}/replay`, {
    from: "2020-01-01T00:00:00Z",
    status: "all",
  });
  for (let current = data; current.queued === 0; current = await find(server, data.rowid)) await pause(5);
  return data.rowid;
}

/** The next begins anew; to its end one takes a minute and more. */
async function cancelReplay(rig: Rig, server: BenchServer, rowid: number): Promise<void> {
  const { status, queued, total } = await find(server, rowid);
  if (status !== "running") {
    rig.failures.push(
      `Replay ${rowid} was ${status}, with ${queued} of ${total} queued, before the live deliveries were.`,
    );
  }
  await server.api("POST", `/v1/replays/${rowid}/cancel`);
}

async function find(server: BenchServer, rowid: number): Promise<Replay> {
  return (await server.api<{ data: Replay }>("GET", `/v1/replays/${rowid}`)).data;
}
