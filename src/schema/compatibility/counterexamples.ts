import { NOT_FOUND, ValueMaker } from "../generate/value-maker.ts";
import { type JsonObject, typesAbout } from "../keywords.ts";
import type { TextWitness } from "../patterns/search.ts";
import { boundsOf, containsValue } from "./bounds.ts";
import type { Conjunction, Literals } from "./conjunction.ts";
import { matchesKeyword } from "../validate/evaluate.ts";
import { unlistedNames } from "./object-rules.ts";
import { type Violation, NAME, type Location } from "./obligation.ts";
import { SchemaNode } from "../node.ts";
import { areDisjoint } from "./unions.ts";

const MAX_LOCAL = 60;
const MAX_EMBEDDED = 4;
/** Branches of a `oneOf` that are tried together with each other. */
const MAX_OVERLAPS = 8;

/** Looks for payloads that prove a violation: with a value at its location that only the left side allows. */
export class CounterexampleSearch {
  readonly #texts: TextWitness;
  readonly #search: ValueMaker;
  readonly #lenient: boolean;

  constructor(side: "producer" | "consumer", texts: TextWitness) {
    this.#lenient = side === "consumer";
    this.#texts = texts;
    this.#search = new ValueMaker(texts);
  }

  /** Whole payloads that may prove it; the caller checks them. */
  *payloads(violation: Violation): Generator {
    const { right, keyword, location } = violation;
    let [tried, embedded] = [0, 0];
    const isRefused = (value: unknown): boolean =>
      keyword === "false" || !matchesKeyword(right, keyword, value, this.#lenient);
    for (const value of this.#values(violation, isRefused)) {
      if (++tried > MAX_LOCAL || embedded >= MAX_EMBEDDED) return;
      if (!containsValue(location.left, value) || !isRefused(value)) continue;
      const payload = this.#embed(location, value);
      if (payload === NOT_FOUND) continue;
      embedded++;
      yield payload;
    }
  }

  *#values(violation: Violation, isRefused: (value: unknown) => boolean): Generator {
    const { left } = violation.location;
    yield* (boundsOf(left).values ?? []).filter(isRefused);
    yield* this.#beyondLimit(violation);
    yield* this.#search.witnesses(left);
  }

  /** Values that the keyword refuses, or is most likely to. */
  *#beyondLimit({ right, keyword, member, location: { left } }: Violation): Generator {
    const limit = right.value(keyword);
    const witnesses = (such: Literals): Generator => this.#search.witnesses(left.with(such));
    const opposite = OPPOSITES[keyword]?.(limit as number);
    if (opposite !== undefined) {
      const node = new SchemaNode(right.document, right.pointer, opposite);
      yield* witnesses({ nodes: [node], types: typesAbout(keyword) });
      return;
    }
    switch (keyword) {
      case "pattern": {
        const { patterns, minLength, maxLength } = boundsOf(left);
        const wanted = { matching: patterns, notMatching: [limit as string], minLength, maxLength };
        const text = this.#texts.find(wanted);
        if (typeof text === "object") yield text.text;
        return;
      }
      case "uniqueItems": {
        const contained = left.nodes.flatMap(({ contains }) => contains ?? []);
        const item = this.#search.witness(left.item(0).with({ nodes: contained }));
        const items = new Map([0, 1].map((index) => [index, item]));
        if (item !== NOT_FOUND) yield* this.#search.witnesses(left, items);
        return;
      }
      case "additionalProperties":
      case "properties":
        if (member !== undefined) yield* this.#withMember(left, String(member));
        // The new schema still accepts objects with listed members only, and there may be more of them than are tried.
        else if (keyword === "additionalProperties") yield* this.#withUnlistedMember(left, right);
        return;
      case "oneOf":
        // What more than one branch allows; then what none does.
        for (const [index, branch] of right.oneOf.slice(0, MAX_OVERLAPS).entries()) {
          for (const other of right.oneOf.slice(index + 1, MAX_OVERLAPS)) {
            if (!areDisjoint(branch, other)) yield* witnesses({ nodes: [branch, other] });
          }
        }
        yield* witnesses({ negated: right.oneOf });
        return;
      case "not":
        yield* witnesses({ nodes: [right.not!] });
        return;
      default:
    }
  }

  *#withMember(left: Conjunction, name: string | undefined): Generator {
    if (name === undefined) return;
    for (const value of this.#search.witnesses(left.member(name))) {
      yield* this.#search.witnesses(left, new Map([[name, value]]));
    }
  }

  *#withUnlistedMember(left: Conjunction, right: SchemaNode): Generator {
    for (const other of unlistedNames(left, right, this.#texts)) yield* this.#withMember(left, other.name);
  }

  /** The smallest payload with the value at the location. */
  #embed({ parent, step }: Location, value: unknown): unknown {
    if (parent === undefined) return value;
    const name = String(value);
    const inner = step === NAME ? this.#search.witness(parent.left.member(name)) : value;
    if (inner === NOT_FOUND) return NOT_FOUND;
    const fixed = new Map([[step === NAME ? name : step, inner]]);
    const around = this.#search.witness(parent.left, fixed);
    return around === NOT_FOUND ? NOT_FOUND : this.#embed(parent, around);
  }
}

/** What is just beyond the limit of a keyword, as a schema. */
const OPPOSITES: Readonly<Record<string, (limit: number) => JsonObject>> = {
  minimum: (limit) => ({ exclusiveMaximum: limit }),
  exclusiveMinimum: (limit) => ({ maximum: limit }),
  maximum: (limit) => ({ exclusiveMinimum: limit }),
  exclusiveMaximum: (limit) => ({ minimum: limit }),
  minLength: (limit) => ({ maxLength: limit - 1 }),
  maxLength: (limit) => ({ minLength: limit + 1 }),
  maxItems: (limit) => ({ minItems: limit + 1 }),
  maxProperties: (limit) => ({ minProperties: limit + 1 }),
};
