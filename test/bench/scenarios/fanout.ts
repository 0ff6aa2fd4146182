import { startChild } from "../child.ts";
import type { FillCalls } from "../fill.ts";
import { median } from "../latencies.ts";
import { memoryOf } from "../memory.ts";
import type { Rig } from "../rig.ts";
import { mb, ms } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import { payloadOf, WAITING_ACTION } from "../workload.ts";

const SUBSCRIPTIONS = 1_000;
const EVENTS = 20;
const PAYLOAD_BYTES = 64 * 1_024;
const PATH = "/fast/fanout";
const LONGEST_MS = 30_000;
/** What the second half of the events may add to the most that was held in the first. */
const FLAT_MB = 16;

interface Sent {
  /** Until the publish was answered. */
  readonly answeredMs: number;
  /** Until the last of its deliveries was received. */
  readonly receivedMs: number;
  /** The most that was held so far. */
  readonly peakMb: number;
}

export const fanout: Scenario = {
  name: "fanout",
  summary: "Events of 64 KiB to 1,000 subscriptions each: one commit, all sent, memory flat.",
  async run(rig) {
    const server = await serverWithSubscriptions(rig);
    await rig.receiver.call("reset", { record: false });
    const beforeMb = memoryOf(server.child.pid)?.nowMb ?? 0;
    const sent: Sent[] = [];
    const sending = async (): Promise<void> => {
      for (let event = 0; event < EVENTS; event += 1) {
        rig.options.say(`fanout, event ${event + 1}`);
        sent.push(await sendOne(rig, server, event));
      }
    };
    await rig.observe("fanout", "1,000 subscriptions", server, sending, () => EVENTS * SUBSCRIPTIONS);
    const afterMb = memoryOf(server.child.pid)?.nowMb ?? 0;
    await rig.retire("fanout", "1,000 subscriptions", server);
    const peakMb = sent.at(-1)?.peakMb ?? Number.NaN;
    const grownMb = peakMb - (sent[EVENTS / 2 - 1]?.peakMb ?? Number.NaN);
    const answered = ms(median(sent.map(({ answeredMs }) => answeredMs)));
    const received = ms(median(sent.map(({ receivedMs }) => receivedMs)));
    const { deliveries, requests } = await rig.receiver.call("read", { path: PATH });
    const all = EVENTS * SUBSCRIPTIONS;
    return [
      {
        scenario: "fanout",
        ceiling: "-",
        measured: `answered in ${answered}, all received in ${received}`,
        figure: `${deliveries.toLocaleString("en")} sent`,
        target: `${all.toLocaleString("en")} once each`,
        met: deliveries === all && requests === all,
        detail: sent,
      },
      {
        scenario: "fanout, memory",
        ceiling: "-",
        measured: `${mb(beforeMb)} before, ${mb(peakMb)} at most, ${mb(afterMb)} after`,
        figure: `+${mb(grownMb)}`,
        target: `≤ +${FLAT_MB} MB`,
        met: grownMb <= FLAT_MB,
        detail: undefined,
      },
    ];
  },
};

async function serverWithSubscriptions(rig: Rig): Promise<BenchServer> {
  rig.options.say("fanout: subscribing");
  const place = rig.newPlace();
  const handler = await rig.handler("fast", "fanout");
  const subscriptions = Array.from({ length: SUBSCRIPTIONS }, (_, number) => ({
    application: "billing",
    subscription: `part-${number}`,
    handler,
  }));
  const filler = startChild<FillCalls>("fill.ts");
  const { folder } = place;
  await filler.call("fill", { folder, action: WAITING_ACTION, subscriptions, events: 0 });
  await filler.end("SIGTERM");
  return startServer(place);
}

async function sendOne(rig: Rig, server: BenchServer, event: number): Promise<Sent> {
  const startedMs = performance.now();
  const { data } = await server.api<{ data: { rowid: number } }>("POST", "/v1/events", {
    action: WAITING_ACTION,
    payload: { ...JSON.parse(payloadOf(event)), note: "n".repeat(PAYLOAD_BYTES) },
  });
  const answeredMs = performance.now() - startedMs;
  if (event === 0) await checkDeliveries(server, data.rowid);
  const deliveries = SUBSCRIPTIONS * (event + 1);
  const inTime = await rig.receiver.call("await", { path: PATH, deliveries, timeoutMs: LONGEST_MS });
  const receivedMs = performance.now() - startedMs;
  const peakMb = memoryOf(server.child.pid)?.peakMb ?? Number.NaN;
  const received = await rig.receiver.call("read", { path: PATH });
  if (!inTime) throw new Error(`${received.deliveries} of ${deliveries} deliveries arrived.`);
  return { answeredMs, receivedMs, peakMb };
}

/** They came with the event, in its commit: as soon as it is answered all are there. */
async function checkDeliveries(server: BenchServer, event: number): Promise<void> {
  const { data } = await server.api<{ data: unknown[] }>("GET", `/v1/events/${event}/deliveries`);
  if (data.length !== SUBSCRIPTIONS)
    throw new Error(`Event ${event} has ${data.length} deliveries at first.`);
}
