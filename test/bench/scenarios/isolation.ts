import { type Arrivals, arrivalTimes } from "../arrivals.ts";
import type { Rig, Scenario } from "../rig.ts";
import { besideRow, inTurns, warmUpMs } from "../rounds.ts";
import { register } from "../seeded-place.ts";
import { type BenchServer, startServer } from "../server.ts";

const HUNG_HANDLERS = 50;
const WAITING_EACH = 2_000;
const RATE_PER_S = 50;
/** As long as an attempt may take, so that every run sees the hung ones end once. */
const DURATION_MS = 10_000;
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
    // It would be busy with its hung handlers for ever.
    await beside.child.end("SIGKILL");
    const [alones = [], besides = []] = measured.values();
    return [besideRow("isolation, p99", alones, besides, TARGET)];
  },
};

async function serverWithHung(rig: Rig): Promise<BenchServer> {
  rig.options.say("isolation: filling");
  const place = rig.newPlace();
  await rig.fill(place, await rig.hungHandlers(HUNG_HANDLERS), WAITING_EACH);
  const server = await startServer(place);
  await register(server, await rig.handler("fast", "orders"));
  return server;
}

function run(rig: Rig, round: number, { port, token }: BenchServer): Promise<Arrivals> {
  const pace = { ratePerS: RATE_PER_S, warmUpMs: warmUpMs(round), durationMs: DURATION_MS };
  return arrivalTimes(rig, { port, token, path: PATH, ...pace });
}
