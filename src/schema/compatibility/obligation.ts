import type { Steps } from "../../runtime/yielding.ts";
import type { TextWitness } from "../patterns/search.ts";
import type { Conjunction } from "./conjunction.ts";
import type { KnownNames } from "./known-names.ts";
import type { SchemaNode } from "../node.ts";
import type { Branches } from "./unions.ts";

/** Where in a payload a comparison is, and what the values on the way are. */
export interface Location {
  readonly parent: Location | undefined;
  /** From the parent to here: a member's name, an item's location, or the name of a member that is looked at itself. */
  readonly step: string | number | typeof NAME;
  readonly left: Conjunction;
}

/** The step from an object to the name of one of its members. */
export const NAME = Symbol("name");

/** Where a comparison is: what the old document says there, and how deep in the payload it is. */
export interface Scope {
  readonly known: KnownNames;
  readonly depth: number;
}

/** To be shown: every value of the case conforms to the schema. */
export interface Obligation extends Scope {
  readonly left: Conjunction;
  readonly right: SchemaNode;
  /**
   * Takes both as they are. Otherwise what the right side says is judged kindly: to a consumer an object is open, and a
   * name the old schema does not mention is no promise to a producer.
   */
  readonly strict: boolean;
  /** The first thing found ends it: nobody wants to know them all. */
  readonly firstOnly: boolean;
  readonly location: Location;
  readonly violations: Violation[];
}

/** A keyword that some value of the case may fail. */
export interface Violation {
  readonly right: SchemaNode;
  readonly keyword: string;
  /** The name or location among those the keyword lists that is at fault. */
  readonly member: string | number | undefined;
  readonly location: Location;
  /** The property is known to the right side and to nobody on the left any more. */
  readonly isRemoved?: boolean;
}

/** A proof on its way: it stops now and then, to go on when others have had their turn. */
export type Proof = Steps<boolean>;

/** What the rules for single keywords ask of the prover. */
export interface Prover {
  readonly side: "producer" | "consumer";
  readonly texts: TextWitness;
  /** Whether every value of the case conforms; adds what it found to the obligation's violations if not. */
  prove(obligation: Obligation): Proof;
  /** Whether the case has no value at all. */
  isEmpty(left: Conjunction, at: Scope): Proof;
  /** Goals about what is inside. */
  member(obligation: Obligation, name: string, right: SchemaNode, left?: Conjunction): Obligation;
  item(obligation: Obligation, index: number, right: SchemaNode, left?: Conjunction): Obligation;
  mentions(known: KnownNames, name: string): boolean;
  /** Whether the case rules out in so many words what the schema says. */
  refuses(left: Conjunction, right: SchemaNode): boolean;
  /** A number that two schemas share exactly when they say the same. */
  classOf(node: SchemaNode): number | undefined;
  /** The branches that may share values with the case. */
  overlapping(left: Conjunction, branches: Branches): Steps<readonly SchemaNode[]>;
}

/** A keyword of the right side, or one entry of it, that is shown by itself. */
export interface KeywordRule {
  readonly keyword: string;
  readonly member?: string | number;
  /** Those of which one must hold. */
  readonly branches?: Branches;
  /** Whether it holds, in plain sight; adds violations where something further inside is at fault. */
  holds(obligation: Obligation, prover: Prover): boolean | Proof;
}
