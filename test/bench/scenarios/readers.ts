import { startChild } from "../child.ts";
import type { LatencySummary } from "../latencies.ts";
import type { Rig, Scenario } from "../rig.ts";
import { besideRow, warmUpMs } from "../rounds.ts";
import { atMost, mb, ms, type Row } from "../row.ts";
import { type BenchServer, startServer } from "../server.ts";
import type { Reading, StreamReadersCalls } from "../stream-readers.ts";
import { publishOf, WAITING_ACTION } from "../workload.ts";

// What those feel who publish and list beside others that read much: streams, and searches that find nothing.

const DURATION_MS = 8_000;
const PUBLISH_TARGET = 3;

/** What is done beside the readers, as one token each. */
interface Beside {
  readonly publishes: LatencySummary;
  /** By path. */
  readonly lists: readonly LatencySummary[];
}

interface Others {
  readonly publisher: string;
  readonly lister: string;
  readonly publishesPerS: number;
  readonly listsPerS: number;
  readonly paths: readonly string[];
}

/** Publishes and lists for a while; any answer but a success fails the run. */
async function besides(
  rig: Rig,
  { port }: BenchServer,
  round: number,
  { publisher, lister, publishesPerS, listsPerS, paths }: Others,
): Promise<Beside> {
  const shared = { port, connections: 16, warmUpMs: warmUpMs(round), durationMs: DURATION_MS };
  const [publishing, listing] = await Promise.all([
    rig.load.call("paced", {
      ...shared,
      token: publisher,
      requests: [publishOf(WAITING_ACTION)],
      ratePerS: publishesPerS,
    }),
    rig.load.call("paced", {
      ...shared,
      token: lister,
      requests: paths.map((path) => ({ path })),
      ratePerS: listsPerS,
    }),
  ]);
  const unsent = publishing.unsent + listing.unsent;
  if (unsent > 0) rig.failures.push(`${unsent} requests beside the readers were never sent`);
  return { publishes: publishing.latencies[0]!, lists: listing.latencies };
}

async function newToken(server: BenchServer, ...scopes: readonly string[]): Promise<string> {
  const body = { name: "bench", scopes };
  return (await server.api<{ data: { token: string } }>("POST", "/v1/tokens", body)).data.token;
}

/** A server with so many events. */
async function serverWith(rig: Rig, events: number): Promise<BenchServer> {
  const place = rig.newPlace();
  await rig.fill(place, [], events);
  return startServer(place);
}

/** How much later the last of a hundred publishes is answered. */
function publishRow(name: string, alone: readonly Beside[], beside: readonly Beside[]): Row {
  const publishes = (runs: readonly Beside[]) => runs.map((run) => run.publishes);
  return besideRow(name, publishes(alone), publishes(beside), PUBLISH_TARGET);
}

const STREAMED = 200_000;
/** Those who catch up. */
const READERS = 20;
/** Those who have everything: as many as one token may have. */
const FOLLOWERS = 100;

const streamPaths = (count: number, since: (reader: number) => string): readonly string[] =>
  Array.from({ length: count }, (_, reader) => `/v1/stream?payloads=true${since(reader)}`);
const READINGS: ReadonlyMap<string, Pick<Reading, "paths" | "follows">> = new Map([
  ["one place", { follows: false, paths: streamPaths(READERS, () => "&since=1") }],
  ["apart", { follows: false, paths: streamPaths(READERS, (reader) => `&since=${1 + reader * 1_001}`) }],
  ["following", { follows: true, paths: streamPaths(FOLLOWERS, () => "") }],
]);

export const streams: Scenario = {
  name: "streams",
  summary: `${READERS} readers of one token catch up over ${STREAMED.toLocaleString("en")} events, again and again, or ${FOLLOWERS} follow, while another token publishes and lists.`,
  async run(rig) {
    rig.options.say("streams: filling");
    const server = await serverWith(rig, STREAMED);
    const reading = await newToken(server, "read");
    const other = await newToken(server, "publish", "read");
    const others = {
      publisher: other,
      lister: other,
      publishesPerS: 50,
      listsPerS: 10,
      paths: ["/v1/events"],
    };
    const readers = startChild<StreamReadersCalls>("stream-readers.ts");
    const rows: Row[] = [];
    for (const [name, how] of READINGS) {
      const rounds = await rig.inRounds(`streams, ${name}`, async (round) => {
        const work = () => besides(rig, server, round, others);
        const alone = await rig.observe("streams", `${name}, alone`, server, work);
        await readers.call("begin", { port: server.port, token: reading, ...how });
        const beganMs = performance.now();
        const beside = await rig.observe("streams", `${name}, beside`, server, work);
        const { broken, bytes } = await readers.call("end");
        if (broken > 0) rig.failures.push(`streams, ${name}: ${broken} readers were broken off`);
        return { alone, beside, mbPerS: bytes / 2 ** 20 / ((performance.now() - beganMs) / 1_000) };
      });
      rows.push(streamRow(rig, name, rounds));
    }
    await readers.end("SIGKILL");
    await rig.retire("streams", "readers", server);
    return rows;
  },
};

interface StreamRound {
  readonly alone: Beside;
  readonly beside: Beside;
  readonly mbPerS: number;
}

function streamRow({ observations }: Rig, name: string, rounds: readonly StreamRound[]): Row {
  const [alone, beside] = [rounds.map((round) => round.alone), rounds.map((round) => round.beside)];
  const during = observations.filter(({ on }) => on === `${name}, beside`);
  const stall = ms(Math.max(...during.map((seen) => seen.loopDelayMaxMs)));
  const lists = ms(Math.max(...beside.flatMap((run) => run.lists.map(({ p99Ms }) => p99Ms))));
  const most = ms(Math.max(...beside.map(({ publishes }) => publishes.maxMs)));
  const read = mb(rounds.at(-1)!.mbPerS);
  const row = publishRow(`streams, ${name}, p99`, alone, beside);
  return {
    ...row,
    measured: `${row.measured}, most ${most}; lists p99 ${lists}; stall ${stall}; read ${read}/s`,
    detail: rounds,
  };
}

const SEARCHED = 30_000;
const SEARCHES = 8;
const LIST_TARGET_MS = 1_000;
/** Nothing conforms, so each search goes through all that it may. */
const SEARCH = `/v1/events?where=${encodeURIComponent('{"properties":{"total":{"minimum":1e9}},"required":["total"]}')}`;
/** A search that decided on nothing in its time is refused, and asked for again. */
const SEARCH_STATUSES = [200, 503];

export const searches: Scenario = {
  name: "searches",
  summary: "Publishes of one token and lists of another beside 8 searches of a third, and alone.",
  async run(rig) {
    rig.options.say("searches: filling");
    const server = await serverWith(rig, SEARCHED);
    const { port, token: publisher } = server;
    const [searcher, lister] = [await newToken(server, "read"), await newToken(server, "read")];
    const paths = ["/v1/actions", "/v1/events"];
    const others = { publisher, lister, publishesPerS: 200, listsPerS: 40, paths };
    const rounds = await rig.inRounds("searches", async (round) => {
      const work = () => besides(rig, server, round, others);
      const alone = await rig.observe("searches", "alone", server, work);
      const search = {
        port,
        token: searcher,
        request: { path: SEARCH },
        connections: SEARCHES,
        expect: SEARCH_STATUSES,
        warmUpMs: warmUpMs(round),
        durationMs: DURATION_MS,
      };
      const [beside] = await rig.observe("searches", "beside searches", server, () =>
        Promise.all([work(), rig.load.call("closed", search)]),
      );
      return { alone, beside };
    });
    await rig.retire("searches", "30,000 events", server);
    const [alone, beside] = [rounds.map((round) => round.alone), rounds.map((round) => round.beside)];
    return [publishRow("searches, publish p99", alone, beside), listRow(beside)];
  },
};

function listRow(beside: readonly Beside[]): Row {
  const most = (member: "p50Ms" | "p99Ms" | "maxMs"): number =>
    Math.max(...beside.flatMap(({ lists }) => lists.map((list) => list[member])));
  return {
    scenario: "searches, lists of others",
    measured: `p50 ${ms(most("p50Ms"))}, p99 ${ms(most("p99Ms"))}, slowest`,
    ...atMost(most("maxMs"), LIST_TARGET_MS, ms),
    detail: beside,
  };
}
