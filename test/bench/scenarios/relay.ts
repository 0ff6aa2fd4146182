import { type Child, startChild } from "../child.ts";
import { median } from "../latencies.ts";
import type { RelayCalls } from "../relay.ts";
import type { Rig } from "../rig.ts";
import type { Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { BenchServer } from "../server.ts";
import { DELIVERED_ACTION, eventBody } from "../workload.ts";

const CONNECTIONS = 64;
const DURATION_MS = 6_000;
/** Until the code that is run most is compiled; longer in the first round. */
const WARM_UP_MS = 300;
const FIRST_WARM_UP_MS = 2_000;
const PATH = "/fast/orders";
const DRAIN_MS = 60_000;
const MOST_RATIO = 1.5;

/** Processor time of an event, published and delivered, in microseconds. */
interface Spent {
  readonly eventUs: number;
  readonly mainThreadUs: number;
}

export const relay: Scenario = {
  name: "relay",
  summary: "Processor time of an event, published and delivered, beside a bare relay that keeps nothing.",
  async run(rig) {
    const child = startChild<RelayCalls>("relay.ts");
    const port = await child.call("listen", { handler: await rig.handler("fast", "orders") });
    const server = await rig.emptyServer();
    const relayed: Spent[] = [];
    const kept: Spent[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`relay, round ${round + 1}: relay`);
      relayed.push(await spent(rig, round, { child, port }));
      rig.options.say(`relay, round ${round + 1}: evreg`);
      kept.push(await spent(rig, round, server));
    }
    await child.end("SIGKILL");
    await rig.retire("relay", "empty", server);
    const ratio = median(kept.map(({ eventUs }, round) => eventUs / (relayed[round]?.eventUs ?? Number.NaN)));
    return [row(ratio, relayed, kept)];
  },
};

type Target = Pick<BenchServer, "port"> &
  Partial<Pick<BenchServer, "token">> & { readonly child: Pick<Child<RelayCalls>, "call"> };

/** The whole of a round: its warm-up and its last deliveries count as well, in time and in events. */
async function spent(rig: Rig, round: number, { port, token, child }: Target): Promise<Spent> {
  await rig.receiver.call("reset", { record: false });
  await child.call("begin");
  const { answeredInAll: events } = await rig.load.call("closed", {
    port,
    ...(token === undefined ? {} : { token }),
    request: { method: "POST", path: "/v1/events", body: eventBody(DELIVERED_ACTION) },
    connections: CONNECTIONS,
    warmUpMs: round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS,
    durationMs: DURATION_MS,
    expect: 201,
  });
  const drained = await rig.receiver.call("await", { path: PATH, deliveries: events, timeoutMs: DRAIN_MS });
  if (!drained) throw new Error(`Not all of ${events} published events arrived.`);
  const { processMs, processShare, mainThreadShare } = await child.call("end");
  const eventUs = (processMs * 1_000) / events;
  return { eventUs, mainThreadUs: (eventUs * mainThreadShare) / processShare };
}

function row(ratio: number, relayed: readonly Spent[], kept: readonly Spent[]): Row {
  const us = (spends: readonly Spent[], member: keyof Spent): string =>
    `${median(spends.map((spend) => spend[member])).toFixed(0)} µs`;
  return {
    scenario: "relay",
    ceiling: `relay ${us(relayed, "eventUs")}`,
    measured: `${us(kept, "eventUs")} an event, ${us(kept, "mainThreadUs")} of it in the main thread`,
    figure: ratio.toFixed(2),
    target: `≤ ${MOST_RATIO.toFixed(2)}`,
    met: ratio <= MOST_RATIO,
    detail: { relayed, kept },
  };
}
