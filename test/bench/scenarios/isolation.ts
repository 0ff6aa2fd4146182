import { arrivalTimes, type Arrivals } from "../arrivals.ts";
import { fill } from "../backlogs.ts";
import { besideRow } from "../beside.ts";
import { register } from "../registry.ts";
import type { Rig } from "../rig.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, startServer } from "../server.ts";
import { inTurns } from "../turns.ts";
import { DELIVERED_ACTION } from "../workload.ts";

const HUNG_HANDLERS = 50;
const WAITING_EACH = 2_000;
const RATE_PER_S = 50;
/** As long as an attempt may take, so that every run sees the hung ones end once. */
const DURATION_MS = 10_000;
const WARM_UP_MS = 500;
const FIRST_WARM_UP_MS = 1_500;
const PATH = "/fast/orders";
const TARGET = 2;

export const isolation: Scenario = {
  name: "isolation",
  summary: "A healthy handler beside 50 that never answer, with 100,000 deliveries waiting for them.",
  async run(rig) {
    const alone = await rig.emptyServer();
    const beside = await serverWithHung(rig);
    const { measured } = await inTurns(rig, {
      scenario: "isolation",
      servers: new Map([
        ["alone", alone],
        ["beside hung", beside],
      ]),
      measure: (server, round) => run(rig, round, server),
      eventsOf: ({ published }) => published,
    });
    await rig.retire("isolation", "alone", alone);
    // It would be busy with its hung handlers for ever.
    await beside.child.end("SIGKILL");
    const [alones = [], besides = []] = measured.values();
    return [besideRow("isolation, p99", { alones, besides }, TARGET)];
  },
};

async function serverWithHung(rig: Rig): Promise<BenchServer> {
  rig.options.say("isolation: filling");
  const place = rig.newPlace();
  const hung = Array.from({ length: HUNG_HANDLERS }, (_, number) => rig.handler("hang", String(number)));
  await fill(place, await Promise.all(hung), WAITING_EACH);
  const server = await startServer(place);
  await register(server, await rig.handler("fast", "orders"));
  return server;
}

function run(rig: Rig, round: number, { port, token }: BenchServer): Promise<Arrivals> {
  return arrivalTimes(rig, {
    port,
    token,
    action: DELIVERED_ACTION,
    path: PATH,
    ratePerS: RATE_PER_S,
    warmUpMs: round === 0 ? FIRST_WARM_UP_MS : WARM_UP_MS,
    durationMs: DURATION_MS,
  });
}
