import type { SchemaNode } from "../document.ts";
import type { JsonType } from "./json-type.ts";
import type { Effort } from "./effort.ts";
import type { SeededRandom } from "./random.ts";
import type { Texts } from "./texts.ts";

/** Stands where no value was found; `undefined` is no JSON, yet `null` is. */
export const NO_VALUE = Symbol("no value");

/** One go at a payload: what its parts are made with. */
export interface Making {
  readonly random: SeededRandom;
  readonly effort: Effort;
  readonly texts: Texts;
  /** Whether a value at that depth is to be as short as it may. */
  isTerse(depth: number): boolean;
  /** A value that all of the schemas allow, or `NO_VALUE`. */
  value(nodes: readonly SchemaNode[], depth: number, only?: JsonType): unknown;
  /** Whether a value conforms to one schema of the document. */
  conforms(node: SchemaNode, value: unknown): boolean;
}
