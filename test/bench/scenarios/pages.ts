import { startChild } from "../child.ts";
import { median } from "../latencies.ts";
import type { PagesCalls } from "../pages.ts";
import type { Rig } from "../rig.ts";
import { ratio } from "../rounds.ts";
import { atLeast, perSecond, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { BenchServer } from "../server.ts";
import { DELIVERED_ACTION } from "../workload.ts";
import { batchesOn } from "./batch.ts";
import { publishOn } from "./publish.ts";
import { publishPaced, rateThatHolds } from "./sustained.ts";

const TARGET = 0.95;
const WARM_UP = { ratePerS: 1_000, durationMs: 2_000, connections: 64 };

type Rate = (rig: Rig, round: number, server: BenchServer) => Promise<number>;

const WORKS: ReadonlyMap<string, Rate> = new Map<string, Rate>([
  ["publish", async (...of) => (await publishOn(...of)).ratePerS],
  ["batch", async (...of) => (await batchesOn(...of)).ratePerS],
  ["sustained", (rig, _, server) => rateThatHolds(rig, server)],
]);

export const pages: Scenario = {
  name: "pages",
  summary: "publish, batch and sustained while three pages at /ui/ are open, beside without.",
  async run(rig) {
    const viewer = startChild<PagesCalls>("pages.ts");
    const rows: Row[] = [];
    for (const [name, rateOf] of WORKS) {
      const server = await rig.emptyServer();
      await publishPaced(rig, server, WARM_UP);
      const id = await subscriptionOf(server);
      const without: number[] = [];
      const beside: number[] = [];
      for (let round = 0; round < rig.options.rounds; round += 1) {
        rig.options.say(`pages, round ${round + 1}: ${name}`);
        const alone = async (): Promise<void> =>
          void without.push(
            await rig.observe(`pages, ${name}`, "without", server, () => rateOf(rig, round, server)),
          );
        const withPages = async (): Promise<void> => {
          await viewer.call("open", { port: server.port, token: server.token, id });
          beside.push(
            await rig.observe(`pages, ${name}`, "three open", server, () => rateOf(rig, round, server)),
          );
          await viewer.call("close");
        };
        // The file grows: neither is always the second.
        for (const run of round % 2 === 0 ? [alone, withPages] : [withPages, alone]) await run();
      }
      await rig.retire("pages", name, server);
      rows.push({
        scenario: `pages, ${name}`,
        ceiling: `without ${perSecond(median(without))}`,
        measured: `${perSecond(median(beside))} events`,
        ...atLeast(ratio(beside, without), TARGET),
        detail: { without, beside },
      });
    }
    await viewer.end("SIGKILL");
    return rows;
  },
};

/** The subscription whose page is open: the one that is delivered to. */
async function subscriptionOf(server: BenchServer): Promise<number> {
  const { data } = await server.api<{ data: readonly { readonly rowid: number; readonly action: string }[] }>(
    "GET",
    "/v1/subscriptions",
  );
  const found = data.find(({ action }) => action === DELIVERED_ACTION);
  if (found === undefined) throw new Error(`Nobody subscribes to ${DELIVERED_ACTION}.`);
  return found.rowid;
}
