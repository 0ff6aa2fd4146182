import { fill } from "../backlogs.ts";
import { besideRow } from "../beside.ts";
import { startChild } from "../child.ts";
import type { LatencySummary } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { SearchesCalls, SearchesResult } from "../searches.ts";
import { type BenchServer, startServer } from "../server.ts";
import { eventBody, WAITING_ACTION } from "../workload.ts";

const STORED = 30_000;
const SEARCHES = 8;
const RATE_PER_S = 200;
const DURATION_MS = 8_000;
const FIRST_WARM_UP_MS = 3_000;
const WARM_UP_MS = 1_000;
const PUBLISH_TARGET = 3;
const LIST_TARGET_MS = 1_000;

export const searches: Scenario = {
  name: "searches",
  summary: "Publishes of one token and lists of another beside 8 searches of a third, and alone.",
  async run(rig) {
    const place = rig.newPlace();
    rig.options.say("searches: filling");
    await fill(place, [], STORED);
    const server = await startServer(place);
    const others = startChild<SearchesCalls>("searches.ts");
    const tokens = { searcher: await newToken(server), reader: await newToken(server) };
    const alones: LatencySummary[] = [];
    const besides: LatencySummary[] = [];
    const results: SearchesResult[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      for (const count of [0, SEARCHES]) {
        rig.options.say(`searches, round ${round + 1}: beside ${count}`);
        await others.call("open", { port: server.port, ...tokens, searches: count });
        const summary = await rig.observe("searches", `beside ${count}`, server, () =>
          publish(rig, server, round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS),
        );
        const result = await others.call("close");
        (count === 0 ? alones : besides).push(summary);
        if (count > 0) results.push(result);
      }
    }
    await others.end("SIGKILL");
    await rig.retire("searches", "30,000 events", server);
    return [besideRow("searches, publish p99", { alones, besides }, PUBLISH_TARGET), listRow(results)];
  },
};

async function newToken(server: BenchServer): Promise<string> {
  const body = { name: "bench", scopes: ["read"] };
  const { data } = await server.api<{ data: { token: string } }>("POST", "/v1/tokens", body);
  return data.token;
}

async function publish(rig: Rig, { port, token }: BenchServer, warmUpMs: number): Promise<LatencySummary> {
  const { latencies } = await rig.load.call("paced", {
    port,
    token,
    requests: [{ method: "POST", path: "/v1/events", body: eventBody(WAITING_ACTION) }],
    connections: 16,
    ratePerS: RATE_PER_S,
    warmUpMs,
    durationMs: DURATION_MS,
    expect: 201,
  });
  return latencies[0]!;
}

function listRow(results: readonly SearchesResult[]): Row {
  const slowestMs = Math.max(...results.map(({ lists }) => lists.maxMs));
  const refused = results.flatMap(({ listed }) => Object.keys(listed)).filter((status) => status !== "200");
  return {
    scenario: "searches, lists of others",
    ceiling: "-",
    measured: `p50 ${ms(Math.max(...results.map(({ lists }) => lists.p50Ms)))}, p99 ${ms(Math.max(...results.map(({ lists }) => lists.p99Ms)))}`,
    figure: `slowest ${ms(slowestMs)}${refused.length === 0 ? "" : `, some ${refused.join(", ")}`}`,
    target: `< ${ms(LIST_TARGET_MS)}`,
    met: slowestMs < LIST_TARGET_MS && refused.length === 0,
    detail: results,
  };
}
