import { besideRow } from "../beside.ts";
import { startChild } from "../child.ts";
import type { FillCalls } from "../fill.ts";
import type { LatencySummary } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { mb, ms } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import type { StreamReadersCalls } from "../stream-readers.ts";
import { eventBody, PAUSED_ACTION } from "../workload.ts";

const EVENTS = 200_000;
const READERS = 20;
const PUBLISHES_PER_S = 50;
const LISTS_PER_S = 10;
const WARM_UP_MS = 1_000;
const DURATION_MS = 8_000;
const TARGET = 3;
/** After which event each reader begins. */
const PLACES: ReadonlyMap<string, (reader: number) => number> = new Map([
  ["one place", () => 1],
  ["apart", (reader: number) => 1 + reader * 1_001],
]);

export const streams: Scenario = {
  name: "streams",
  summary: `${READERS} readers of one token catch up over ${EVENTS.toLocaleString("en")} events, again and again, while another token publishes and lists.`,
  async run(rig) {
    const server = await filledServer(rig);
    const token = async (name: string, scopes: readonly string[]): Promise<string> => {
      const body = { name, scopes };
      const { data } = await server.api<{ data: { token: string } }>("POST", "/v1/tokens", body);
      return data.token;
    };
    const reading = await token("readers", ["read"]);
    const other = await token("other", ["publish", "read"]);
    const readers = startChild<StreamReadersCalls>("stream-readers.ts");
    const rows = [];
    for (const [name, placeOf] of PLACES) {
      const paths = Array.from(
        { length: READERS },
        (_, reader) => `/v1/stream?payloads=true&since=${placeOf(reader)}`,
      );
      const alones: LatencySummary[] = [];
      const besides: LatencySummary[] = [];
      const lists: LatencySummary[] = [];
      let read = { bytes: 0, caughtUp: 0, broken: 0 };
      for (let round = 0; round < rig.options.rounds; round += 1) {
        rig.options.say(`streams, ${name}, round ${round + 1}: alone`);
        const alone = await rig.observe("streams", `${name}, alone`, server, () => load(rig, server, other));
        rig.options.say(`streams, ${name}, round ${round + 1}: beside ${READERS} readers`);
        await readers.call("begin", { port: server.port, token: reading, paths });
        const beside = await rig.observe("streams", `${name}, beside`, server, () =>
          load(rig, server, other),
        );
        read = await readers.call("end");
        if (read.broken > 0) rig.failures.push(`streams, ${name}: ${read.broken} readers were broken off`);
        alones.push(alone.publishes);
        besides.push(beside.publishes);
        lists.push(beside.lists);
      }
      const stallMs = Math.max(
        ...rig.observations
          .filter(({ on }) => on === `${name}, beside`)
          .map(({ loopDelayMaxMs }) => loopDelayMaxMs),
      );
      const listMs = Math.max(...lists.map(({ p99Ms }) => p99Ms));
      const mostMs = Math.max(...besides.map(({ maxMs }) => maxMs));
      const row = besideRow(`streams, ${name}, p99`, { alones, besides }, TARGET);
      const perSecond = read.bytes / ((WARM_UP_MS + DURATION_MS) / 1_000);
      rows.push({
        ...row,
        measured: `${row.measured}, most ${ms(mostMs)}; lists p99 ${ms(listMs)}; stall ${ms(stallMs)}; read ${mb(perSecond / 2 ** 20)}/s`,
        detail: { alones, besides, lists, read, stallMs },
      });
    }
    await readers.end("SIGKILL");
    await rig.retire("streams", "readers", server);
    return rows;
  },
};

async function filledServer(rig: Rig): Promise<BenchServer> {
  rig.options.say("streams: filling");
  const place = rig.newPlace();
  const filler = startChild<FillCalls>("fill.ts");
  await filler.call("fill", {
    folder: place.folder,
    action: PAUSED_ACTION,
    subscriptions: [],
    events: EVENTS,
  });
  await filler.end("SIGTERM");
  return startServer(place);
}

/** What another token does; any answer but a success fails the run. */
async function load(
  rig: Rig,
  { port }: BenchServer,
  token: string,
): Promise<{ publishes: LatencySummary; lists: LatencySummary }> {
  const shared = { port, token, connections: 8, warmUpMs: WARM_UP_MS, durationMs: DURATION_MS };
  const [publishing, listing] = await Promise.all([
    rig.load.call("paced", {
      ...shared,
      requests: [{ method: "POST", path: "/v1/events", body: eventBody(PAUSED_ACTION) }],
      ratePerS: PUBLISHES_PER_S,
      expect: 201,
    }),
    rig.load.call("paced", {
      ...shared,
      requests: [{ method: "GET", path: "/v1/events?limit=50" }],
      ratePerS: LISTS_PER_S,
      expect: 200,
    }),
  ]);
  const unsent = publishing.unsent + listing.unsent;
  if (unsent > 0) rig.failures.push(`streams: ${unsent} requests beside the readers were never sent`);
  return { publishes: publishing.latencies[0]!, lists: listing.latencies[0]! };
}
