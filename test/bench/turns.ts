import type { Rig } from "./rig.ts";
import type { BenchServer } from "./server.ts";

export interface Turns<C, T> {
  readonly scenario: string;
  /** What the servers are compared with. */
  readonly ceiling?: (round: number) => Promise<C>;
  /** By their names in the report. */
  readonly servers: ReadonlyMap<string, BenchServer>;
  readonly measure: (server: BenchServer, round: number) => Promise<T>;
  /** How many events a measurement was. */
  readonly eventsOf: (result: T) => number;
}

/** Measures the ceiling and then each server, round by round. Answers what came of each, in the order of the rounds. */
export async function inTurns<C, T>(rig: Rig, turns: Turns<C, T>) {
  const { scenario, ceiling, servers, measure, eventsOf } = turns;
  const ceilings: C[] = [];
  const measured = new Map([...servers.keys()].map((name): [string, T[]] => [name, []]));
  for (let round = 0; round < rig.options.rounds; round += 1) {
    rig.options.say(`${scenario}, round ${round + 1}: the ceiling`);
    if (ceiling !== undefined) ceilings.push(await ceiling(round));
    for (const [name, server] of servers) {
      rig.options.say(`${scenario}, round ${round + 1}: ${name}`);
      const result = await rig.observe(scenario, name, server, () => measure(server, round), eventsOf);
      measured.get(name)!.push(result);
    }
  }
  return { ceilings, measured };
}
