import { fill } from "../backlogs.ts";
import { besideRow } from "../beside.ts";
import type { LatencySummary } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import { eventBody, WAITING_ACTION } from "../workload.ts";

const STORED = 30_000;
const SEARCHES = 8;
const RATE_PER_S = 200;
const LISTS_PER_S = 40;
const DURATION_MS = 8_000;
const FIRST_WARM_UP_MS = 3_000;
const WARM_UP_MS = 1_000;
const PUBLISH_TARGET = 3;
const LIST_TARGET_MS = 1_000;
/** Nothing conforms, so each search goes through all that it may. */
const SEARCH = `/v1/events?where=${encodeURIComponent('{"properties":{"total":{"minimum":1e9}},"required":["total"]}')}`;
/** A search that decided on nothing in its time is refused, and asked for again. */
const SEARCH_STATUSES = [200, 503];

interface Others {
  readonly searcher: string;
  readonly reader: string;
}

interface Beside {
  readonly publishes: LatencySummary;
  readonly lists: readonly LatencySummary[];
}

export const searches: Scenario = {
  name: "searches",
  summary: "Publishes of one token and lists of another beside 8 searches of a third, and alone.",
  async run(rig) {
    const place = rig.newPlace();
    rig.options.say("searches: filling");
    await fill(place, [], STORED);
    const server = await startServer(place);
    const others = { searcher: await newToken(server), reader: await newToken(server) };
    const alones: Beside[] = [];
    const besides: Beside[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      for (const count of [0, SEARCHES]) {
        rig.options.say(`searches, round ${round + 1}: beside ${count}`);
        const warmUpMs = round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS;
        const work = () => load(rig, server, others, { searches: count, warmUpMs });
        (count === 0 ? alones : besides).push(await rig.observe("searches", `beside ${count}`, server, work));
      }
    }
    await rig.retire("searches", "30,000 events", server);
    const publishes = (runs: readonly Beside[]): LatencySummary[] => runs.map((run) => run.publishes);
    const compared = { alones: publishes(alones), besides: publishes(besides) };
    return [besideRow("searches, publish p99", compared, PUBLISH_TARGET), listRow(besides)];
  },
};

async function newToken(server: BenchServer): Promise<string> {
  const body = { name: "bench", scopes: ["read"] };
  const { data } = await server.api<{ data: { token: string } }>("POST", "/v1/tokens", body);
  return data.token;
}

/** Each publishes, lists or searches for as long; a list that is refused fails the run. */
async function load(
  rig: Rig,
  { port, token }: BenchServer,
  { searcher, reader }: Others,
  { searches: connections, warmUpMs }: { readonly searches: number; readonly warmUpMs: number },
): Promise<Beside> {
  const shared = { port, warmUpMs, durationMs: DURATION_MS };
  const [publishing, listing] = await Promise.all([
    rig.load.call("paced", {
      ...shared,
      token,
      requests: [{ method: "POST", path: "/v1/events", body: eventBody(WAITING_ACTION) }],
      connections: 16,
      ratePerS: RATE_PER_S,
      expect: 201,
    }),
    rig.load.call("paced", {
      ...shared,
      token: reader,
      requests: ["/v1/actions", "/v1/events"].map((path) => ({ method: "GET", path })),
      connections: 4,
      ratePerS: LISTS_PER_S,
      expect: 200,
    }),
    rig.load.call("closed", {
      ...shared,
      token: searcher,
      request: { method: "GET", path: SEARCH },
      connections,
      expect: SEARCH_STATUSES,
    }),
  ]);
  return { publishes: publishing.latencies[0]!, lists: listing.latencies };
}

function listRow(besides: readonly Beside[]): Row {
  const most = (member: "p50Ms" | "p99Ms" | "maxMs"): number =>
    Math.max(...besides.flatMap(({ lists }) => lists.map((times) => times[member])));
  return {
    scenario: "searches, lists of others",
    ceiling: "-",
    measured: `p50 ${ms(most("p50Ms"))}, p99 ${ms(most("p99Ms"))}`,
    figure: `slowest ${ms(most("maxMs"))}`,
    target: `< ${ms(LIST_TARGET_MS)}`,
    met: most("maxMs") < LIST_TARGET_MS,
    detail: besides,
  };
}
