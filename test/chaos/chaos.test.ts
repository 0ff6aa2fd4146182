import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { expect, test } from "vitest";
import { mintToken } from "../../src/domain/token-secret.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { startCluster } from "../support/postgres.ts";
import { temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";
import { Actors } from "./actors.ts";
import { Audit } from "./audit.ts";
import { Faults } from "./faults.ts";
import { Fleet } from "./fleet.ts";
import { openLinks } from "./links.ts";
import { ChaosLoad } from "./load.ts";
import { KEPT_IN, RATE, SECONDS, SEED } from "./options.ts";
import { ChaosReceiver } from "./receiver.ts";
import { setScene } from "./scene.ts";

// Three nodes on one database, all of which fail all the time. See `README.md` beside this.

const DATABASE = "chaos";
const TOKEN = mintToken(randomBytes);
/** The clocks of the nodes, beside that of the machine. */
const AHEAD_MS = [0, 5_000, -5_000];
/** What waited during the faults is sent by then: half of their time, and some. */
const SETTLE_MS = 240_000 + SECONDS * 500;

const UNFINISHED = `SELECT s.subscription AS name, count(*)::int AS count FROM evreg.delivery AS d
    JOIN evreg.subscription AS s ON s.rowid = d.subscription_id WHERE d.state IN (0, 5) GROUP BY 1
  UNION ALL SELECT 'replays', count(*)::int FROM evreg.replay WHERE status = 'running' HAVING count(*) > 0 ORDER BY 2 DESC`;

function say(what: string): void {
  process.stdout.write(`${new Date().toISOString()} ${what}\n`);
}

test(
  `${AHEAD_MS.length} nodes lose nothing in ${SECONDS} s of faults at ${RATE} events a second`,
  { timeout: SECONDS * 1_000 + SETTLE_MS * 2 },
  async () => {
    if (KEPT_IN !== undefined) mkdirSync(KEPT_IN, { recursive: true });
    const folder = temporaryFolder();
    const cluster = await startCluster(["fsync=on", "full_page_writes=on", "max_wal_size=4GB"]);
    await cluster.run(`CREATE DATABASE ${DATABASE}`);
    const { port } = new URL(cluster.url(DATABASE));
    const links = await openLinks(Number(port), AHEAD_MS.length);
    const receiver = new ChaosReceiver();
    await receiver.listen();
    const fleet = new Fleet(TOKEN);
    try {
      for (const [place, aheadMs] of AHEAD_MS.entries()) {
        const url = new URL(cluster.url(DATABASE));
        url.port = String(links.ports[place]);
        await fleet.add(join(folder.path, `node-${place}`), url.href, aheadMs);
        // The first one makes the tables.
        await until("a node answers", () => fleet.readyCount === place + 1);
      }
      const subs = await setScene(fleet, receiver);
      const load = new ChaosLoad(fleet, RATE);
      const actors = new Actors(fleet, receiver, subs);
      actors.start();
      const numbers = new SeededRandom(SEED);
      const random = (): number => numbers.fraction();
      const faults = new Faults({ fleet, links, cluster, database: DATABASE, random });
      faults.start();
      say(`chaos with seed ${SEED}`);
      for (let second = 0; second < SECONDS; second += 10) {
        await wait(Math.min(10, SECONDS - second) * 1_000);
        say(
          `${load.acknowledged.size} of ${load.sent} acknowledged, ${load.unanswered} open, bulk ${receiver.of("bulk-1").length}, keyed ${receiver.of("keyed-1").length}, steady ${receiver.of("steady-1").length}, followed ${actors.followed.length}, faults ${faults.done.length}`,
        );
      }
      await faults.end();
      say("the last fault is over");
      await load.stop();
      await actors.end(async () => {
        const [row] = await cluster.query<{ last: number }>(
          "SELECT coalesce(max(rowid), 0)::int AS last FROM evreg.event",
          DATABASE,
        );
        return row!.last;
      });
      say("all is published and read");
      let shownMs = 0;
      const settled = async (): Promise<boolean> => {
        const left = await cluster.query<{ name: string; count: number }>(UNFINISHED, DATABASE);
        if (performance.now() - shownMs > 10_000) {
          shownMs = performance.now();
          say(`unfinished: ${left.map(({ name, count }) => `${name} ${count}`).join(", ")}`);
        }
        if (left.length > 0) await wait(250);
        return left.length === 0;
      };
      let hasSettled = true;
      await until("every delivery and replay came to its end", settled, SETTLE_MS).catch((error: unknown) => {
        hasSettled = false;
        say(String(error));
      });
      await faults.endSampling();
      const audit = new Audit({ cluster, database: DATABASE, subs, load, actors, faults, receiver });
      const figures = { ...(await audit.figures()), hasSettled };
      const statuses = Object.fromEntries(fleet.statuses);
      const findings = [...fleet.findings, ...load.findings];
      const all = { seed: SEED, figures, statuses, findings, examples: audit.examples };
      process.stdout.write(`\nchaos: ${JSON.stringify(all, null, 2)}\n`);
      if (KEPT_IN !== undefined) {
        writeFileSync(join(KEPT_IN, "result.json"), JSON.stringify({ ...all, faults: faults.done }, null, 2));
      }
      expect(findings).toEqual([]);
      expect(figures).toMatchObject({
        lost: 0,
        storedTwice: 0,
        refusedButStored: 0,
        undelivered: 0,
        skipped: 0,
        followedOutOfOrder: 0,
        inversions: 0,
        begunAfterPause: 0,
        begunAfterMove: 0,
        revokedAccepted: 0,
        overRate: 0,
        replaysUndone: 0,
        replayedMissing: 0,
        hasSettled: true,
      });
      expect(figures.repeated).toBeLessThanOrEqual(figures.inFlightAtFaults);
      expect(figures.recoveredMs).toBeLessThanOrEqual(15_000);
      expect(figures.unexplainedMs).toBeLessThanOrEqual(15_000);
    } finally {
      await fleet.end();
      receiver.close();
      links.close();
      await cluster.stop();
      folder.remove();
    }
  },
);
