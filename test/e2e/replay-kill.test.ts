import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { inLongForm, lengthOf, report } from "../faults/length.ts";
import { connect } from "../../src/client/client.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

const folder = temporaryFolder();
const data = join(folder.path, "data");
const { events: EVENTS, kills } = lengthOf("e2e/replay-kill");
const IN_A_BATCH = Math.min(EVENTS, 1_000);
const LONGEST_MS = 400_000;
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

inLongForm(
  "a replay continues after kill -9 of the server, while publishing goes on",
  { timeout: 2 * LONGEST_MS },
  async () => {
    let server = await startProgram(data, ["--dev"]);
    let evreg = connect({ url: server.url });
    const action = "order.created";
    await evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
    const event = { action, payload: RawJson.fromText("{}") };
    for (let done = 0; done < EVENTS; done += IN_A_BATCH) {
      await evreg.events.publishBatch(Array.from({ length: IN_A_BATCH }, () => event));
    }
    const names = { application: "billing", subscription: "late", action };
    const { data: subscription } = await evreg.subscriptions.create({ ...names, handler: receiver.url });
    const { data: replay } = await evreg.replays.start(subscription.rowid, {
      from: "2020-01-01T00:00:00Z",
      status: "missed",
    });

    const sent = distinct(receiver);
    for (let kill = 1; kill <= kills; kill += 1) {
      await evreg.events.publish(event);
      await until("some of them to be delivered", () => sent().size >= (EVENTS / 4) * kill, LONGEST_MS);
      await server.end("SIGKILL");
      await evreg.close();
      server = await startProgram(data, ["--dev"]);
      evreg = connect({ url: server.url });
    }
    let seen = 0;
    await until(
      "the replay to be done",
      async () => {
        const received = sent().size - kills;
        const { status, queued, total } = (await evreg.replays.get(replay.rowid)).data;
        // What it says of its progress is true, and never goes back.
        expect(queued).toBeGreaterThanOrEqual(Math.max(seen, received));
        expect(queued).toBeLessThanOrEqual(total ?? 0);
        seen = queued;
        return status === "done";
      },
      LONGEST_MS,
    );
    expect((await evreg.replays.get(replay.rowid)).data).toMatchObject({
      total: EVENTS,
      queued: EVENTS,
      skipped: 0,
    });
    const all = EVENTS + kills;
    await until("every event to be delivered", () => sent().size === all, LONGEST_MS);
    // What was under way at a kill is sent once more; what was stored as delivered is not.
    const again = receiver.requests.length - all;
    expect(again).toBeLessThanOrEqual(kills * (MOST_DUE + 1));
    report("replay", { events: EVENTS, kills, lost: all - sent().size, again });
    await evreg.close();
    await server.end("SIGTERM");
  },
);

/** Answers the ids that were received, those of the last time looked at once. */
function distinct({ requests }: Receiver): () => ReadonlySet<unknown> {
  const ids = new Set<unknown>();
  let looked = 0;
  return () => {
    for (; looked < requests.length; looked += 1) ids.add(requests[looked]?.headers["webhook-id"]);
    return ids;
  };
}
