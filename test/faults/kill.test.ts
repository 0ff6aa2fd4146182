import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { Stats } from "../../src/domain/stats/stats.ts";
import { DELIVERY_STATE } from "../../src/store/sql/queue/delivery-state.ts";
import type { ChangeStream } from "../../src/evreg.ts";
import { fileSql } from "../support/file-sql.ts";
import { freePort } from "../support/free-port.ts";
import { launchProgram, startProgram } from "../support/program.ts";
import { until } from "../support/until.ts";
import { Load, register, settled, useFault } from "./fault.ts";
import { ALL_ATTEMPTS } from "./ledger.ts";
import { lengthOf, report, rounds } from "./length.ts";

// The promise under test: what was answered 201 is never lost, and nothing is stored twice, however the process dies; and a
// stream that goes on shows each event once and in order.

const { kills } = lengthOf("faults/kill");
/** Up to so long after the server answers; every fifth dies while it starts instead. */
const LONGEST_MS = 350;
const STARTING_MS = 400;

/** What the figures are of, as the data file has it. */
const STORED = `SELECT (SELECT count(*) FROM event) AS published,
  (SELECT count(*) FROM ${ALL_ATTEMPTS} WHERE outcome = 'delivered') AS delivered,
  (SELECT count(*) FROM attempt WHERE outcome = 'failed') AS failed_attempts,
  (SELECT count(*) FROM delivery WHERE state = ${DELIVERY_STATE.failed}) AS failed`;
/** Attempts that a kill has cut short, and deliveries of which one was counted against the retries all the same. */
const CUT_SHORT = `SELECT (SELECT count(*) FROM attempt WHERE outcome = 'returned') AS attempts,
  (SELECT count(*) FROM delivery WHERE failures > (SELECT count(*) FROM attempt
    WHERE delivery_id = delivery.rowid AND outcome = 'failed')) AS counted`;
const FIGURES = ["published", "delivered", "failed_attempts", "failed"] as const;

function sum(values: readonly (number | null)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

function named(valueOf: (name: (typeof FIGURES)[number]) => number): Record<string, number> {
  return Object.fromEntries(FIGURES.map((name) => [name, valueOf(name)]));
}

async function follow(stream: ChangeStream, shown: number[]): Promise<void> {
  for await (const message of stream) if (message.type === "event") shown.push(message.data.rowid);
}

/** Three ways to the same figures. */
async function figuresOf(url: string, range: string): Promise<Record<string, Record<string, number>>> {
  const response = await fetch(`${url}/v1/stats?range=${range}&by=action`);
  const { data } = (await response.json()) as { data: Stats };
  return {
    totals: named((name) => data.totals[name]),
    series: named((name) => sum(data.series[name])),
    rows: named((name) => sum(data.rows!.map((row) => row[name]))),
  };
}

// So that retries are under way when the process dies; but not so often that the end has to wait for many of them. Only
// the first retry comes at once.
const fault = useFault((count) => {
  if (count > rounds(1, 2) || Math.random() > 0.25) return {};
  return Math.random() < 0.3 ? "reset" : { status: 503 };
});

test(
  `kill -9 under load, ${kills} times: acknowledged events are stored once, delivered, counted and streamed`,
  { timeout: 60_000 + kills * 3_000 },
  async () => {
    const { path, ledger } = fault;
    const port = await freePort();
    const flags = ["--dev", "--port", String(port)];
    const reader = connect({ url: `http://127.0.0.1:${port}` });
    const shown: number[] = [];
    let stream: ChangeStream | undefined;
    let following: Promise<void> | undefined;
    for (let round = 0; round < kills; round += 1) {
      const server = launchProgram(path, flags);
      if (stream === undefined) {
        await register(await server.ready, fault.receiver.url);
        stream = await reader.stream({ payloads: true });
        following = follow(stream, shown);
      }
      if (round % 5 === 1) {
        const starting = server.ready.catch(() => undefined);
        await Promise.race([starting, pause(Math.random() * STARTING_MS)]);
        await server.end("SIGKILL");
        continue;
      }
      const before = ledger.acknowledged;
      const load = new Load(await server.ready, ledger, 200);
      await until("events are acknowledged", () => ledger.acknowledged - before >= 20);
      await pause(Math.random() * LONGEST_MS);
      await Promise.all([load.stop(), server.end("SIGKILL")]);
    }

    const last = await startProgram(path, flags);
    await settled(last.url);
    const [newest] = (await reader.events.list({ limit: 1 })).data;
    await until("the stream to show the last event", () => shown.at(-1) === newest?.rowid);
    await stream?.close();
    await following;
    await reader.close();
    const figures = await Promise.all(["1h", "24h", "7d"].map((range) => figuresOf(last.url, range)));
    expect((await last.end("SIGTERM")).code).toBe(0);
    const balance = ledger.expectWhole(path, { refused: 0 });
    expect(balance.acknowledged).toBeGreaterThan(kills * 10);
    expect(balance.repeated).toBeGreaterThan(0);
    const [stored] = fileSql(join(path, "evreg.db"), STORED);
    for (const each of figures) expect(each).toEqual({ totals: stored, series: stored, rows: stored });
    const rows = fileSql(join(path, "evreg.db"), "SELECT rowid FROM event ORDER BY rowid");
    expect(shown).toEqual(rows.map(({ rowid }) => rowid));
    const [cut] = fileSql(join(path, "evreg.db"), CUT_SHORT);
    expect(cut).toEqual({ attempts: expect.any(Number) as number, counted: 0 });
    // A few kills may all come between two attempts.
    if (kills > 100) expect(cut?.["attempts"]).toBeGreaterThan(0);
    report("kill -9", { kills, ...balance });
  },
);
