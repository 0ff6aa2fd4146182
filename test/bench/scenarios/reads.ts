import { eventListings } from "../history.ts";
import type { Scenario } from "../rig.ts";
import { latencies } from "../rounds.ts";
import { atMost, ms, type Row } from "../row.ts";
import { startServer } from "../server.ts";
import { PAUSED_ACTION, publishOf } from "../workload.ts";

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
    const published = { ...shared, requests: [publishOf(PAUSED_ACTION)], ratePerS: PUBLISHES_PER_S };
    const read = { ...shared, requests: listings.map(([, path]) => ({ path })), ratePerS: READS_PER_S };
    const [publishing, reading] = await rig.observe("reads", rig.historyName, server, () =>
      Promise.all([rig.load.call("paced", published), rig.load.call("paced", read)]),
    );
    // The next scenario on this folder waits until it has rested.
    if (rig.options.idle) rig.rests.begin("reads", rig.historyName, server);
    else await server.stop();

    const unsent = publishing.unsent + reading.unsent;
    if (unsent > 0) rig.failures.push(`reads: ${unsent} requests were never sent`);
    const rows: Row[] = [];
    for (const [which, [name, path]] of listings.entries()) {
      const times = reading.latencies[which]!;
      rows.push({
        scenario: `reads, ${name}`,
        measured: latencies([times]),
        ...atMost(times.p99Ms, TARGET_MS, ms),
        detail: { path, times, publishing: publishing.latencies },
      });
    }
    return rows;
  },
};
