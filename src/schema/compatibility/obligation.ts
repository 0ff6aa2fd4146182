import type { SchemaNode } from "../node.ts";
import type { TextWitness } from "../patterns/search.ts";
import type { Conjunction } from "./conjunction.ts";
import type { Equivalence } from "./equivalence.ts";
import type { KnownNames } from "./known-names.ts";

/** Where in a payload the comparison is, and which values there are on the way. */
export interface Location {
  readonly parent: Location | undefined;
  /** The step from the parent to here: a member's name, an item's index, or `NAME` for a member's name itself. */
  readonly step: string | number | typeof NAME;
  readonly left: Conjunction;
}

/** The step from an object to the name of one of its members. */
export const NAME = Symbol("name");

/** What the old document says at this location, and how deep in the payload it is. */
export interface ObligationScope {
  readonly known: KnownNames;
  readonly depth: number;
}

/** What is to be proven: every value of the conjunction conforms to the schema. */
export interface Obligation extends ObligationScope {
  readonly left: Conjunction;
  readonly right: SchemaNode;
  /** Takes both sides literally. Otherwise consumers ignore unknown members, and new names break no producer. */
  readonly strict: boolean;
  readonly firstOnly: boolean;
  readonly location: Location;
  readonly violations: Violation[];
}

/** A keyword that some value of the conjunction may fail. */
export interface Violation {
  readonly right: SchemaNode;
  readonly keyword: string;
  /** The name or index at fault, among those the keyword lists. */
  readonly member: string | number | undefined;
  readonly location: Location;
  /** Only the right side still knows the property. */
  readonly isRemoved?: boolean;
}

/** What keyword rules may use of the prover. */
export interface Prover {
  readonly side: "producer" | "consumer";
  readonly texts: TextWitness;
  readonly equivalence: Equivalence;
  /** Whether every value conforms; if not, adds to the obligation's violations. */
  prove(obligation: Obligation): boolean;
  /** Whether the conjunction has no value. */
  isEmpty(left: Conjunction, at: ObligationScope): boolean;
}

/** Decides one keyword of the right side, or one entry of it. */
export interface KeywordRule {
  readonly keyword: string;
  readonly member?: string | number;
  /** Whether it plainly holds; adds violations where something further inside is at fault. */
  holds(obligation: Obligation, prover: Prover): boolean;
}

/** Narrows an obligation to fewer values at the same location. */
export function narrowed(obligation: Obligation, left: Conjunction): Obligation {
  return { ...obligation, left, location: { ...obligation.location, left } };
}

export function memberObligation(
  around: Obligation,
  name: string,
  right: SchemaNode,
  left = around.left.member(name),
): Obligation {
  return inside(around, name, right, left, around.known.member(name));
}

export function itemObligation(around: Obligation, index: number, right: SchemaNode): Obligation {
  return inside(around, index, right, around.left.item(index), around.known.item(index));
}

export function nameObligation(around: Obligation, right: SchemaNode): Obligation {
  return inside(around, NAME, right, around.left.name(), around.known);
}

function inside(
  around: Obligation,
  step: Location["step"],
  right: SchemaNode,
  left: Conjunction,
  known: KnownNames,
): Obligation {
  const location: Location = { parent: around.location, step, left };
  return { ...around, left, right, known, depth: around.depth + 1, location };
}
