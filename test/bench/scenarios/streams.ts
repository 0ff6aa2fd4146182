import { fill } from "../backlogs.ts";
import { besideRow } from "../beside.ts";
import { startChild } from "../child.ts";
import type { LatencySummary } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { mb, ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import type { Reading, StreamReadersCalls } from "../stream-readers.ts";
import { eventBody, WAITING_ACTION } from "../workload.ts";

const EVENTS = 200_000;
/** Those who catch up. */
const READERS = 20;
/** Those who have everything: as many as one token may have. */
const FOLLOWERS = 100;
const PUBLISHES_PER_S = 50;
const LISTS_PER_S = 10;
const WARM_UP_MS = 1_000;
const DURATION_MS = 8_000;
const TARGET = 3;

const paths = (count: number, since: (reader: number) => string): readonly string[] =>
  Array.from({ length: count }, (_, reader) => `/v1/stream?payloads=true${since(reader)}`);
const READINGS: ReadonlyMap<string, Pick<Reading, "paths" | "follows">> = new Map([
  ["one place", { follows: false, paths: paths(READERS, () => "&since=1") }],
  ["apart", { follows: false, paths: paths(READERS, (reader) => `&since=${1 + reader * 1_001}`) }],
  ["following", { follows: true, paths: paths(FOLLOWERS, () => "") }],
]);

interface Beside {
  readonly publishes: LatencySummary;
  readonly lists: LatencySummary;
}

export const streams: Scenario = {
  name: "streams",
  summary: `${READERS} readers of one token catch up over ${EVENTS.toLocaleString("en")} events, again and again, or ${FOLLOWERS} follow, while another token publishes and lists.`,
  async run(rig) {
    rig.options.say("streams: filling");
    const place = rig.newPlace();
    await fill(place, [], EVENTS);
    const server = await startServer(place);
    const token = async (name: string, scopes: readonly string[]): Promise<string> => {
      const body = { name, scopes };
      const { data } = await server.api<{ data: { token: string } }>("POST", "/v1/tokens", body);
      return data.token;
    };
    const reading = await token("readers", ["read"]);
    const other = await token("other", ["publish", "read"]);
    const readers = startChild<StreamReadersCalls>("stream-readers.ts");
    const rows: Row[] = [];
    for (const [name, how] of READINGS) {
      const alones: Beside[] = [];
      const besides: Beside[] = [];
      let read = { bytes: 0, caughtUp: 0, broken: 0 };
      for (let round = 0; round < rig.options.rounds; round += 1) {
        rig.options.say(`streams, ${name}, round ${round + 1}: alone`);
        alones.push(await rig.observe("streams", `${name}, alone`, server, () => load(rig, server, other)));
        rig.options.say(`streams, ${name}, round ${round + 1}: beside the readers`);
        await readers.call("begin", { port: server.port, token: reading, ...how });
        besides.push(await rig.observe("streams", `${name}, beside`, server, () => load(rig, server, other)));
        read = await readers.call("end");
        if (read.broken > 0) rig.failures.push(`streams, ${name}: ${read.broken} readers were broken off`);
      }
      rows.push(row(rig, name, { alones, besides }, read.bytes));
    }
    await readers.end("SIGKILL");
    await rig.retire("streams", "readers", server);
    return rows;
  },
};

function row(
  { observations }: Rig,
  name: string,
  { alones, besides }: { readonly alones: readonly Beside[]; readonly besides: readonly Beside[] },
  bytes: number,
): Row {
  const stallMs = Math.max(
    ...observations.filter(({ on }) => on === `${name}, beside`).map((seen) => seen.loopDelayMaxMs),
  );
  const listMs = Math.max(...besides.map(({ lists }) => lists.p99Ms));
  const mostMs = Math.max(...besides.map(({ publishes }) => publishes.maxMs));
  const read = mb(bytes / 2 ** 20 / ((WARM_UP_MS + DURATION_MS) / 1_000));
  const publishes = (runs: readonly Beside[]): LatencySummary[] => runs.map((run) => run.publishes);
  const shown = besideRow(
    `streams, ${name}, p99`,
    { alones: publishes(alones), besides: publishes(besides) },
    TARGET,
  );
  return {
    ...shown,
    measured: `${shown.measured}, most ${ms(mostMs)}; lists p99 ${ms(listMs)}; stall ${ms(stallMs)}; read ${read}/s`,
    detail: { alones, besides, bytes, stallMs },
  };
}

/** What another token does; any answer but a success fails the run. */
async function load(rig: Rig, { port }: BenchServer, token: string): Promise<Beside> {
  const shared = { port, token, connections: 8, warmUpMs: WARM_UP_MS, durationMs: DURATION_MS };
  const [publishing, listing] = await Promise.all([
    rig.load.call("paced", {
      ...shared,
      requests: [{ method: "POST", path: "/v1/events", body: eventBody(WAITING_ACTION) }],
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
