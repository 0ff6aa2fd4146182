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
  /** As in `Part`. */
  readonly weight: number;
  /** Bytes of stack that the part's function takes, an upper bound. */
  readonly frameBytes: number;
}

/** Measured on Node 24 with interpreted code, which takes the most: see test/schema/hostile.test.ts. */
const FRAME_BYTES = 320;
const KEYWORD_BYTES = 48;

/**
 * Refuses schemas whose references would make a check endless, or too long or too deep for the stack whatever the payload.
 * A recursive schema is fine where each round goes deeper into the payload, which has an end.
 * @throws `invalid` with the place
 */
export function checkCallGraph(document: unknown, parts: readonly Part[]): void {
  const graph = parts.map(callsOf);
  const chains = longestPaths(graph, ({ same }) => same);
  if ("loop" in chains) {
    const message =
      "refers back to itself without going deeper into the payload, so the check would never end";
    throw refuseSchema(document, parts[chains.loop]!.pointer, message);
  }
  const paths = longestPaths(graph, ({ same, inside }) => [...same, ...inside]);
  const deepest = "loop" in paths ? chains.longest : paths.longest / SCHEMA_LIMITS.depth;
  if (deepest > SCHEMA_LIMITS.stackBytesPerLevel) {
    const message = "chains too many references or alternatives in one recursive place; split it up";
    throw refuseSchema(document, "", message);
  }
  if (expandedSize(graph) > SCHEMA_LIMITS.expandedSubschemas) {
    const max = SCHEMA_LIMITS.expandedSubschemas.toLocaleString("en");
    throw refuseSchema(document, "", `stands for more than ${max} schemas once every $ref is followed`);
  }
}

function callsOf({ schema, weight }: Part): Calls {
  const same: number[] = [];
  const inside: number[] = [];
  let keywords = 0;
  const visit = (value: unknown, isDeeper: boolean): void => {
    if (!isObject(value)) return;
    keywords += Object.keys(value).length;
    const callee = value[CALL];
    if (typeof callee === "number") (isDeeper ? inside : same).push(callee);
    for (const { schema: child, looksAt } of subschemasOf(value))
      visit(child, isDeeper || looksAt === "inside");
  };
  visit(schema, false);
  return { same, inside, weight, frameBytes: FRAME_BYTES + KEYWORD_BYTES * keywords };
}

/** The most stack that a path along some of the calls takes, or a part on a loop of them. */
function longestPaths(
  graph: readonly Calls[],
  callees: (calls: Calls) => readonly number[],
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
      const total = calls.frameBytes + Math.max(0, ...next.map((callee) => done.get(callee) ?? 0));
      done.set(part, total);
      longest = Math.max(longest, total);
    }
  }
  return { longest };
}

/** Schemas there are with every call replaced by its part; a call back to a part that is being counted counts nothing. */
function expandedSize(graph: readonly Calls[]): number {
  const sizes = new Map<number, number>();
  // A chain of parts can be long, so a call takes one small frame.
  const sizeOf = (part: number): number => {
    const known = sizes.get(part);
    if (known !== undefined) return known;
    sizes.set(part, 0);
    const { same, inside, weight } = graph[part]!;
    let size = weight;
    for (const callee of [...same, ...inside]) size += sizeOf(callee);
    sizes.set(part, size);
    return size;
  };
  return sizeOf(0);
}
