import type { Steps } from "../../runtime/yielding.ts";
import type { TextSearch } from "../patterns/search.ts";
import type { Case } from "./conjunction.ts";
import type { View } from "./known-names.ts";
import type { SchemaNode } from "../node.ts";
import type { Branches } from "./unions.ts";

/** Where in a payload a comparison is, and what the values on the way are. */
export interface Place {
  readonly parent: Place | undefined;
  /** From the parent to here: a member's name, an item's place, or the name of a member that is looked at itself. */
  readonly step: string | number | typeof NAME;
  readonly left: Case;
}

/** The step from an object to the name of one of its members. */
export const NAME = Symbol("name");

/** Where a comparison is: what the old document says there, and how deep in the payload it is. */
export interface At {
  readonly view: View;
  readonly depth: number;
}

/** To be shown: every value of the case conforms to the schema. */
export interface Goal extends At {
  readonly left: Case;
  readonly right: SchemaNode;
  /**
   * Takes both as they are. Otherwise what the right side says is judged kindly: to a consumer an object is open, and a
   * name the old schema does not mention is no promise to a producer.
   */
  readonly strict: boolean;
  /** The first thing found ends it: nobody wants to know them all. */
  readonly brief: boolean;
  readonly place: Place;
  readonly findings: Finding[];
}

/** A keyword that some value of the case may fail. */
export interface Finding {
  readonly right: SchemaNode;
  readonly keyword: string;
  /** The name or place among those the keyword lists that is at fault. */
  readonly part: string | number | undefined;
  readonly place: Place;
  /** The property is known to the right side and to nobody on the left any more. */
  readonly isGone?: boolean;
}

/** A proof on its way: it stops now and then, to go on when others have had their turn. */
export type Showing = Steps<boolean>;

/** What the rules for single keywords ask of the prover. */
export interface Prover {
  readonly side: "producer" | "consumer";
  readonly texts: TextSearch;
  /** Whether every value of the case conforms; adds what it found to the goal's findings if not. */
  prove(goal: Goal): Showing;
  /** Whether the case has no value at all. */
  isImpossible(left: Case, at: At): Showing;
  /** Goals about what is inside. */
  member(goal: Goal, name: string, right: SchemaNode, left?: Case): Goal;
  item(goal: Goal, index: number, right: SchemaNode, left?: Case): Goal;
  mentions(view: View, name: string): boolean;
  /** Whether the case rules out in so many words what the schema says. */
  refuses(left: Case, right: SchemaNode): boolean;
  /** A number that two schemas share exactly when they say the same. */
  classOf(shape: SchemaNode): number | undefined;
  /** The branches that may share values with the case. */
  near(left: Case, branches: Branches): Steps<readonly SchemaNode[]>;
}

/** A keyword of the right side, or one entry of it, that is shown by itself. */
export interface KeywordRule {
  readonly keyword: string;
  readonly part?: string | number;
  /** Those of which one must hold. */
  readonly branches?: Branches;
  /** Whether it holds, in plain sight; adds findings where something further inside is at fault. */
  holds(goal: Goal, prover: Prover): boolean | Showing;
}
