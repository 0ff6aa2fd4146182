import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect } from "vitest";
import { connect } from "../../src/client/client.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";
import { inLongForm, lengthOf, report } from "./length.ts";
import { create } from "./load.ts";

// The promise under test: a stream shows every event once and in order, however often the server dies.

const { kills: KILLS } = lengthOf("faults/streams");
const ACTION = "load.sent";

const folder = temporaryFolder();
afterAll(() => folder.remove());

inLongForm(
  "a client that goes on through kill -9 of its server has each event once and in order",
  { timeout: 300_000 },
  async () => {
    let server = await startProgram(folder.path, ["--dev"]);
    const { url } = server;
    await create(`${url}/v1/actions`, { action: ACTION, application: "load", schemata: { type: "object" } });
    const reader = connect({ url });
    let disconnects = 0;
    const stream = await reader.stream({ payloads: true }, { disconnected: () => (disconnects += 1) });
    const seen: number[] = [];
    const reading = (async () => {
      for await (const message of stream) if (message.type === "event") seen.push(message.data.rowid);
    })();

    const publisher = connect({ url, timeoutMs: 5_000 });
    const done = new AbortController();
    let refused = 0;
    const publishing = (async () => {
      const underWay = new Set<Promise<unknown>>();
      while (!done.signal.aborted) {
        const one = publisher.events
          .publish({ action: ACTION, payload: RawJson.fromText('{"some":"payload"}') })
          .catch(() => (refused += 1))
          .finally(() => underWay.delete(one));
        underWay.add(one);
        // 500 a second, as far as the server keeps up.
        await pause(2);
        if (underWay.size >= 64) await Promise.race(underWay);
      }
      await Promise.all(underWay);
    })();
    for (let kill = 0; kill < KILLS; kill += 1) {
      await pause(500 + Math.random() * 1_500);
      await server.end("SIGKILL");
      server = await startProgram(folder.path, ["--dev", "--port", new URL(url).port]);
    }
    await pause(300);
    done.abort();
    await publishing;
    const stored: number[] = [];
    for (let after = 0; ;) {
      const { data } = await publisher.events.list({ order: "asc", after, limit: 500 });
      stored.push(...data.map(({ rowid }) => rowid));
      if (data.length < 500) break;
      after = data.at(-1)!.rowid;
    }
    await until("the last event", () => seen.at(-1) === stored.at(-1));
    await stream.close();
    await reading;
    expect(seen).toEqual(stored);
    expect(disconnects).toBeGreaterThanOrEqual(KILLS);
    report("streams through kills", { kills: KILLS, events: stored.length, refused, disconnects });
    for (const evreg of [reader, publisher]) await evreg.close();
    await server.end("SIGTERM");
  },
);
