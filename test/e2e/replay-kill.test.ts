import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

const folder = temporaryFolder();
const data = join(folder.path, "data");
const EVENTS = 2_000;
/** A replay has at most so many due. */
const MOST_DUE = 50;
let receiver: Receiver;

beforeAll(async () => {
  mkdirSync(data);
  receiver = await startReceiver();
});

afterAll(async () => {
  await receiver.close();
  folder.remove();
});

test(
  "a replay goes on where it was after kill -9 of the server, while publishing goes on",
  { timeout: 120_000 },
  async () => {
    let server = await startProgram(data, ["--dev"]);
    let evreg = connect({ url: server.url });
    const action = "order.created";
    await evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
    const event = { action, payload: RawJson.fromText("{}") };
    for (let done = 0; done < EVENTS; done += 1_000) {
      await evreg.events.publishBatch(Array.from({ length: 1_000 }, () => event));
    }
    const names = { application: "billing", subscription: "late", action };
    const { data: subscription } = await evreg.subscriptions.create({ ...names, handler: receiver.url });
    const { data: replay } = await evreg.replays.start(subscription.rowid, {
      from: "2020-01-01T00:00:00Z",
      status: "missed",
    });

    const kills = 2;
    for (let kill = 1; kill <= kills; kill += 1) {
      await evreg.events.publish(event);
      await receiver.received((EVENTS / 4) * kill);
      await server.end("SIGKILL");
      await evreg.close();
      server = await startProgram(data, ["--dev"]);
      evreg = connect({ url: server.url });
    }
    await until(
      "the replay to be done",
      async () => (await evreg.replays.get(replay.rowid)).data.status === "done",
      60_000,
    );
    expect((await evreg.replays.get(replay.rowid)).data).toMatchObject({
      total: EVENTS,
      queued: EVENTS,
      skipped: 0,
    });
    const all = EVENTS + kills;
    const sent = (): Set<unknown> => new Set(receiver.requests.map(({ headers }) => headers["webhook-id"]));
    await until("every event to be delivered", () => sent().size === all, 60_000);
    // What was under way at a kill is sent once more; what was stored as delivered is not.
    expect(receiver.requests.length - all).toBeLessThanOrEqual(kills * (MOST_DUE + 1));
    await evreg.close();
    await server.end("SIGTERM");
  },
);
