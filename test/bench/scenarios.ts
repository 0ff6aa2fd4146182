import type { Scenario } from "./rig.ts";
import { backlog, slow } from "./scenarios/backlogs.ts";
import { isolation } from "./scenarios/isolation.ts";
import { memory } from "./scenarios/memory.ts";
import { filled, nodes } from "./scenarios/postgres.ts";
import { batch, publish } from "./scenarios/publish.ts";
import { reads } from "./scenarios/reads.ts";
import { latency, relay } from "./scenarios/relay.ts";
import { schemas } from "./scenarios/schemas.ts";
import { start } from "./scenarios/start.ts";
import { searches, streams } from "./scenarios/readers.ts";
import { sustained } from "./scenarios/sustained.ts";

/** In the order in which they run; the last one looks back at the others. */
export const SCENARIOS: readonly Scenario[] = [
  publish,
  batch,
  backlog,
  sustained,
  relay,
  latency,
  reads,
  streams,
  searches,
  isolation,
  slow,
  schemas,
  start,
  nodes,
  filled,
  memory,
];
