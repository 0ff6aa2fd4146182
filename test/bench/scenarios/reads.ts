import { eventListings } from "../history.ts";
import { ms } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { startServer } from "../server.ts";
import { eventBody, PAUSED_ACTION } from "../workload.ts";

const READS_EACH = 300;
const READS_PER_S = 140;
const PUBLISHES_PER_S = 1_000;
const CONNECTIONS = 16;
const TARGET_MS = 10;
const WARM_UP_MS = 1_000;

export const reads: Scenario = {
  name: "reads",
  summary: "GET /v1/events over the history in each way, while 1,000 events a second are published.",
  async run(rig) {
    const { place, history } = await rig.seeded();
    const server = await startServer(place);
    const listings = [...eventListings(history)];
    rig.options.say("reads");
    const { port, token } = server;
    const durationMs = ((READS_EACH * listings.length) / READS_PER_S) * 1_000;
    const shared = { port, token, connections: CONNECTIONS, warmUpMs: WARM_UP_MS, durationMs };
    const [publishing, reading] = await rig.observe("reads", rig.historyName, server, () =>
      Promise.all([
        rig.load.call("paced", {
          ...shared,
          requests: [{ method: "POST", path: "/v1/events", body: eventBody(PAUSED_ACTION) }],
          ratePerS: PUBLISHES_PER_S,
          expect: 201,
        }),
        rig.load.call("paced", {
          ...shared,
          requests: listings.map(([, path]) => ({ method: "GET", path })),
          ratePerS: READS_PER_S,
          expect: 200,
        }),
      ]),
    );
    // The next scenario on this folder waits until it has rested.
    if (rig.options.idle) rig.rests.begin("reads", rig.historyName, server);
    else await server.stop();

    const unsent = publishing.unsent + reading.unsent;
    if (unsent > 0) rig.failures.push(`reads: ${unsent} requests were never sent`);
    return listings.map(([name, path], which) => {
      const times = reading.latencies[which]!;
      return {
        scenario: `reads, ${name}`,
        ceiling: "-",
        measured: `p50 ${ms(times.p50Ms)}, p99 ${ms(times.p99Ms)}`,
        figure: ms(times.p99Ms),
        target: `≤ ${TARGET_MS} ms`,
        met: times.p99Ms <= TARGET_MS,
        detail: { path, times, publishing: publishing.latencies },
      };
    });
  },
};
