import { eventsOf, HISTORY_ACTIONS, type History } from "../history.ts";
import type { ListingRead } from "../load-reads.ts";
import { countEvents } from "../registry.ts";
import { ms } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import { eventBody, PAUSED_ACTION } from "../workload.ts";

const READS_EACH = 300;
const READS_PER_S = 140;
const PUBLISHES_PER_S = 1_000;
const PER_PAGE = 50;
const TARGET_MS = 10;
const WARM_UP_MS = 1_000;
/** Nothing is published to it while this runs. */
const QUIET_ACTION = "customer.created";
/** Events of the history, a whole number of hundreds, so that its shares hold in between. */
const WINDOW = { first: 500_001, end: 700_001 };

export const reads: Scenario = {
  name: "reads",
  summary: "GET /v1/events over the history in each way, while 1,000 events a second are published.",
  async run(rig) {
    const { place, history } = await rig.seeded();
    const server = await startServer(place);
    const kinds = await kindsOf(server, history);
    rig.options.say("reads");
    const { port, token } = server;
    const durationMs = ((READS_EACH * kinds.length) / READS_PER_S) * 1_000;
    const shared = { port, token, warmUpMs: WARM_UP_MS };
    const result = await rig.observe("reads", rig.historyName, server, () =>
      rig.load.call("reads", {
        publishing: {
          ...shared,
          requests: [{ method: "POST", path: "/v1/events", body: eventBody(PAUSED_ACTION) }],
          connections: 16,
          ratePerS: PUBLISHES_PER_S,
          durationMs,
          expect: 201,
        },
        reading: { ...shared, connections: 16, ratePerS: READS_PER_S, durationMs, expect: 200 },
        reads: kinds,
      }),
    );
    // The next scenario on this folder waits until it has rested.
    if (rig.options.idle) rig.rests.begin("reads", rig.historyName, server);
    else await server.stop();

    const { wrong, reading, publishing } = result;
    for (const fault of wrong.slice(0, 5)) rig.failures.push(`reads: ${fault}`);
    const publishMs = publishing.latencies[0]?.p99Ms ?? 0;
    return [
      ...kinds.map(({ name, path }, which) => {
        const times = reading.latencies[which];
        const p99Ms = times?.p99Ms ?? Number.NaN;
        return {
          scenario: `reads, ${name}`,
          ceiling: "-",
          measured: `p50 ${ms(times?.p50Ms ?? Number.NaN)}, p99 ${ms(p99Ms)}`,
          figure: ms(p99Ms),
          target: `≤ ${TARGET_MS} ms`,
          met: p99Ms <= TARGET_MS,
          detail: { path, times },
        };
      }),
      {
        scenario: "reads, totals",
        ceiling: "-",
        measured: `${reading.answered} listings, ${reading.unsent} never sent, publishes meanwhile p99 ${ms(publishMs)}`,
        figure: `${wrong.length} wrong`,
        target: "0 wrong",
        met: wrong.length === 0 && reading.unsent === 0,
        detail: { publishing },
      },
    ];
  },
};

async function kindsOf(server: BenchServer, history: History): Promise<readonly ListingRead[]> {
  const { events, startMs, stepMs } = history;
  const total = await countEvents(server);
  const busy = await countEvents(server, PAUSED_ACTION);
  const at = (event: number): string => encodeURIComponent(new Date(startMs + event * stepMs).toISOString());
  const window = `from=${at(WINDOW.first)}&to=${at(WINDOW.end)}`;
  const inWindow = WINDOW.end - WINDOW.first;
  const share = HISTORY_ACTIONS.find(({ action }) => action === QUIET_ACTION)?.share ?? 0;
  const all = { total, grows: true };
  const after = events / 2;
  const deepPage = Math.floor(events / 2 / PER_PAGE);
  const kind = (
    name: string,
    query: string,
    expected: { total: number; grows: boolean; below?: number },
  ): ListingRead => ({
    name,
    path: `/v1/events?limit=${PER_PAGE}${query}`,
    perPage: PER_PAGE,
    ...expected,
  });
  return [
    kind("page 1", "", all),
    kind("action", `&action=${QUIET_ACTION}`, { total: eventsOf(QUIET_ACTION, history), grows: false }),
    kind("busy action", `&action=${PAUSED_ACTION}`, { total: busy, grows: true }),
    kind("time", `&${window}`, { total: inWindow, grows: false }),
    kind("action and time", `&action=${QUIET_ACTION}&${window}`, {
      total: (inWindow / 100) * share,
      grows: false,
    }),
    kind("after", `&after=${after}`, { ...all, below: after }),
    kind(`page ${deepPage.toLocaleString("en")}`, `&page=${deepPage}`, all),
  ];
}
