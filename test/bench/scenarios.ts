import type { Scenario } from "./scenario.ts";
import { backlog } from "./scenarios/backlog.ts";
import { batch } from "./scenarios/batch.ts";
import { filled } from "./scenarios/filled.ts";
import { isolation } from "./scenarios/isolation.ts";
import { latency } from "./scenarios/latency.ts";
import { memory } from "./scenarios/memory.ts";
import { nodes } from "./scenarios/nodes.ts";
import { publish } from "./scenarios/publish.ts";
import { reads } from "./scenarios/reads.ts";
import { relay } from "./scenarios/relay.ts";
import { schemas } from "./scenarios/schemas.ts";
import { searches } from "./scenarios/searches.ts";
import { slow } from "./scenarios/slow.ts";
import { start } from "./scenarios/start.ts";
import { streams } from "./scenarios/streams.ts";
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
