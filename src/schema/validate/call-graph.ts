import { refuseSchema } from "../document-rules.ts";
import { isObject, subschemasOf } from "../keywords.ts";
import { SCHEMA_LIMITS } from "../limits.ts";
import { CALL } from "./ajv-keywords.ts";
import type { SchemaPart } from "./split-schema.ts";

interface PartCalls {
  /** Parts called on the value itself, each as often as it is. */
  readonly same: number[];
  /** Parts called on values inside it. */
  readonly inside: number[];
  /** The weight of the part, see `SchemaPart`. */
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
export function checkCallGraph(document: unknown, parts: readonly SchemaPart[]): void {
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

function callsOf({ schema, weight }: SchemaPart): PartCalls {
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

const OPEN = -1;

/** The most stack that a path along some of the calls takes, or a part on a loop of them. */
function longestPaths(
  graph: readonly PartCalls[],
  callees: (calls: PartCalls) => readonly number[],
): { longest: number } | { loop: number } {
  const lengths = new Map<number, number>();
  let loop: number | undefined;
  // A chain of parts can be long, so a call takes one small frame.
  const lengthFrom = (part: number): number => {
    const known = lengths.get(part);
    if (known === OPEN) loop = part;
    if (known !== undefined) return known;
    lengths.set(part, OPEN);
    const calls = graph[part]!;
    let longest = 0;
    for (const callee of callees(calls)) longest = Math.max(longest, lengthFrom(callee));
    lengths.set(part, calls.frameBytes + longest);
    return calls.frameBytes + longest;
  };
  let longest = 0;
  for (const part of graph.keys()) longest = Math.max(longest, lengthFrom(part));
  return loop === undefined ? { longest } : { loop };
}

/** Schemas there are with every call replaced by its part; a call back to a part that is being counted counts nothing. */
function expandedSize(graph: readonly PartCalls[]): number {
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
