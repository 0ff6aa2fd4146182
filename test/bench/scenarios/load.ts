import { startChild } from "../child.ts";
import type { EchoCalls } from "../echo.ts";
import type { ClosedLoopResult } from "../load-closed.ts";
import type { Rig } from "../rig.ts";
import { ratio } from "../rounds.ts";
import { median } from "../latencies.ts";
import { atLeast, perSecond } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import { eventBody, PAUSED_ACTION } from "../workload.ts";

const DURATION_MS = 1_000;
/** The fastest thing that is measured here takes less than the load can send. */
const TARGET = 1.25;

export const load: Scenario = {
  name: "load",
  summary: "What the load itself can send: to a raw responder, beside the echo that bounds the rest.",
  async run(rig) {
    const echo = startChild<EchoCalls>("echo.ts");
    const echoPort = await echo.call("listen");
    const rawPort = await rig.receiverPort();
    const raws: ClosedLoopResult[] = [];
    const echoes: ClosedLoopResult[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`load, round ${round + 1}`);
      raws.push(await send(rig, round, rawPort, "/fast/load"));
      echoes.push(await send(rig, round, echoPort, "/v1/events"));
    }
    await echo.end("SIGKILL");
    const share = median(echoes.map(({ loadShare }) => loadShare));
    return [
      {
        scenario: "load itself",
        ceiling: `h3 echo ${perSecond(median(rates(echoes)))}, load ${Math.round(share * 100)} % busy`,
        measured: `raw responder ${perSecond(median(rates(raws)))}`,
        ...atLeast(ratio(rates(raws), rates(echoes)), TARGET),
        detail: { raws, echoes },
      },
    ];
  },
};

function rates(runs: readonly ClosedLoopResult[]): number[] {
  return runs.map(({ ratePerS }) => ratePerS);
}

function send(rig: Rig, round: number, port: number, path: string): Promise<ClosedLoopResult> {
  return rig.load.call("closed", {
    port,
    request: { method: "POST", path, body: eventBody(PAUSED_ACTION) },
    connections: 64,
    warmUpMs: round === 0 ? 1_000 : 200,
    durationMs: DURATION_MS,
    expect: 200,
  });
}
