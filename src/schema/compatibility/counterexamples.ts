import { NOT_FOUND, ValueMaker } from "../generate/value-maker.ts";
import { type JsonObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { TextWitness } from "../patterns/search.ts";
import { boundsOf, containsValue } from "./bounds.ts";
import type { Conjunction, Literals } from "./conjunction.ts";
import { matches, matchesKeyword } from "../validate/evaluate.ts";
import { unlistedNames } from "./object-rules.ts";
import { type Violation, NAME, type Location } from "./obligation.ts";
import { SchemaNode } from "../node.ts";
import { areDisjoint } from "./unions.ts";

const MAX_LOCAL = 60;
const MAX_EMBEDDED = 4;
const MAX_OPTIONAL = 12;
const MAX_ITEMS = 300;
/** Branches of a `oneOf` that are tried together with each other. */
const MAX_OVERLAPS = 8;
const STEPS_PER_ITEM = 12;

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
    yield* finiteValuesAt(violation.location).filter(isRefused);
    yield* this.#beyondLimit(violation);
    yield* this.#search.witnesses(left);
    const optional = left.nodes.flatMap(({ properties }) => [...properties.keys()]).slice(0, MAX_OPTIONAL);
    for (const name of optional) yield* this.#withMember(left, name);
    yield* this.#withUnlistedMember(left, violation.right);
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
      case "multipleOf":
        for (const times of [0.5, 1.5, 0.1, 1.1]) yield (limit as number) * times;
        return;
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
      case "propertyNames": {
        const names =
          boundsOf(left.name()).values ?? left.nodes.flatMap(({ properties }) => [...properties.keys()]);
        for (const name of names as string[]) {
          if (!matches(right.propertyNames!, name)) yield* this.#withMember(left, name);
        }
        return;
      }
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
      case "contains":
        yield* this.#list(left, Math.max(1, boundsOf(left).minItems), { negated: [right.contains!] });
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

  /** Lists of that length with such items only. */
  *#list(left: Conjunction, length: number, such: Literals): Generator {
    if (length > MAX_ITEMS) return;
    spend(length * STEPS_PER_ITEM);
    const { unique } = boundsOf(left);
    const items = new Map<number, unknown>();
    for (let index = 0; index < length; index++) {
      const others = unique ? [...items.values()] : [];
      const item = this.#search.another(left.item(index).with(such), others);
      if (item === NOT_FOUND) return;
      items.set(index, item);
    }
    yield* this.#search.witnesses(left, items);
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

/** The finite values at the location, or there within finite values around it. */
function finiteValuesAt({ left, parent, step }: Location): readonly unknown[] {
  const { values } = boundsOf(left);
  if (values !== undefined || parent === undefined) return values ?? [];
  return finiteValuesAt(parent).flatMap((around) => {
    if (typeof around !== "object" || around === null) return [];
    if (step === NAME) return Object.keys(around);
    return Object.hasOwn(around, step) ? [(around as Record<string | number, unknown>)[step]] : [];
  });
}
