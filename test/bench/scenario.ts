import type { Rig } from "./rig.ts";
import type { Row } from "./row.ts";

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  /** Whether it runs only where `--only` names it. */
  readonly isOnlyByName?: boolean;
  run(rig: Rig): Promise<readonly Row[]>;
}
