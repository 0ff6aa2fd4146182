import { refuseSchema } from "../document-rules.ts";
import { isObject, subschemasOf } from "../keywords.ts";
import { SCHEMA_LIMITS } from "../limits.ts";
import { CALL } from "./ajv-keywords.ts";
import type { Part } from "./split-schema.ts";

interface Calls {
  /** Parts called on the value itself, each as often as it is. */
  readonly same: number[];
  /** Parts called on values inside it. */
  readonly inside: number[];
  /** Bytes of stack the part's function takes, from above. */
  readonly frameBytes: number;
}

/** Measured on Node 24 with interpreted code, which takes the most: see test/schema/hostile.test.ts. */
const FRAME_BYTES = 320;
const KEYWORD_BYTES = 48;

/**
 * Refuses schemas whose references would make a check endless, or too long or too deep for the stack whatever the payload.
 * A recursive schema is fine where each round goes deeper into the payload, as that has an end.
 * @throws `invalid` with the place
 */
export function checkCallGraph(document: unknown, parts: readonly Part[]): void {
  const graph = parts.map((part) => callsOf(part.schema));
  const chains = longestPaths(
    graph,
    ({ same }) => same,
    ({ frameBytes }) => frameBytes,
  );
  if ("loop" in chains) {
    const message =
      "refers back to itself without going deeper into the payload, so the check would never end";
    throw refuseSchema(document, parts[chains.loop]!.pointer, message);
  }
  const paths = longestPaths(
    graph,
    ({ same, inside }) => [...same, ...inside],
    ({ frameBytes }) => frameBytes,
  );
  const perLevel = SCHEMA_LIMITS.stackBytesPerLevel;
  const deepest = "loop" in paths ? chains.longest : paths.longest / SCHEMA_LIMITS.depth;
  if (deepest > perLevel) {
    throw refuseSchema(
      document,
      "",
      "chains too many references or alternatives in one recursive place; split it up",
    );
  }
  if (expandedSize(parts, graph) > SCHEMA_LIMITS.expandedSubschemas) {
    const most = SCHEMA_LIMITS.expandedSubschemas.toLocaleString("en");
    throw refuseSchema(document, "", `stands for more than ${most} schemas once every $ref is followed`);
  }
}

function callsOf(schema: unknown): Calls {
  const same: number[] = [];
  const inside: number[] = [];
  let keywords = 0;
  const visit = (value: unknown, deeper: boolean): void => {
    if (!isObject(value)) return;
    keywords += Object.keys(value).length;
    const callee = value[CALL];
    if (typeof callee === "number") (deeper ? inside : same).push(callee);
    for (const { schema: child, looksAt } of subschemasOf(value))
      visit(child, deeper || looksAt === "inside");
  };
  visit(schema, false);
  return { same, inside, frameBytes: FRAME_BYTES + KEYWORD_BYTES * keywords };
}

/** The heaviest path along some of the calls, or a part on a loop of them. */
function longestPaths(
  graph: readonly Calls[],
  callees: (calls: Calls) => readonly number[],
  weight: (calls: Calls) => number,
): { longest: number } | { loop: number } {
  const done = new Map<number, number>();
  const open = new Set<number>();
  let longest = 0;
  for (let start = 0; start < graph.length; start++) {
    // Depth first with its own stack: a chain can be as long as there are parts.
    const stack = [start];
    while (stack.length > 0) {
      const part = stack.at(-1)!;
      const calls = graph[part]!;
      const next = callees(calls);
      if (!done.has(part) && !open.has(part)) {
        open.add(part);
        for (const callee of next) {
          if (open.has(callee)) return { loop: callee };
          if (!done.has(callee)) stack.push(callee);
        }
        continue;
      }
      stack.pop();
      if (done.has(part)) continue;
      open.delete(part);
      const total = weight(calls) + Math.max(0, ...next.map((callee) => done.get(callee) ?? 0));
      done.set(part, total);
      longest = Math.max(longest, total);
    }
  }
  return { longest };
}

/** Schemas there are with every call replaced by its part; a call back into an open part counts nothing more. */
function expandedSize(parts: readonly Part[], graph: readonly Calls[]): number {
  const done = new Map<number, number>();
  const open = new Set<number>();
  const size = (part: number): number => {
    const known = done.get(part);
    if (known !== undefined) return known;
    if (open.has(part)) return 0;
    open.add(part);
    let total = parts[part]!.weight;
    const { same, inside } = graph[part]!;
    for (const callee of [...same, ...inside]) total += size(callee);
    open.delete(part);
    done.set(part, total);
    return total;
  };
  return size(0);
}
