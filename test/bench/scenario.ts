import type { Rig } from "./rig.ts";
import type { Row } from "./row.ts";

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  run(rig: Rig): Promise<readonly Row[]>;
}
