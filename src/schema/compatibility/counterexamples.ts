import type { Steps } from "../../runtime/yielding.ts";
import { spend } from "../limits.ts";
import type { TextSearch } from "../patterns/search.ts";
import { factsOf, isOf } from "./bounds.ts";
import type { Case } from "./conjunction.ts";
import { accepts, acceptsKeyword } from "./evaluate.ts";
import { otherNames } from "./object-rules.ts";
import { type Finding, NAME, type Place } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";
import { clash } from "./unions.ts";
import { NONE, Sampler } from "./witnesses.ts";

const MAX_LOCAL = 60;
const MAX_LIFTED = 4;
const MAX_OPTIONAL = 12;
const MAX_ITEMS = 300;
/** Of more branches of a `oneOf` than these not all are tried together. */
const MAX_OVERLAPS = 8;
const STEPS_PER_ITEM = 12;

/** Looks for payloads that show a finding: at its place a value of the left side that the keyword refuses. */
export class Examples {
  readonly #texts: TextSearch;
  readonly #sampler: Sampler;
  readonly #lenient: boolean;

  constructor(side: "producer" | "consumer", texts: TextSearch) {
    this.#lenient = side === "consumer";
    this.#texts = texts;
    this.#sampler = new Sampler(texts);
  }

  /**
   * Whole payloads, each of which may show it; whether one does is for the caller to see. `undefined`, which no payload is,
   * where it may wait.
   */
  *payloads({ right, keyword, part, place }: Finding): Generator {
    let [tried, lifted] = [0, 0];
    const isRefused = (value: unknown): boolean =>
      keyword === "false" || !acceptsKeyword(right, keyword, value, this.#lenient);
    for (const value of this.#values({ right, keyword, part, place }, isRefused)) {
      if (value === undefined) {
        yield;
        continue;
      }
      if (++tried > MAX_LOCAL || lifted >= MAX_LIFTED) return;
      yield;
      if (!isOf(place.left, value)) continue;
      if (!isRefused(value)) continue;
      const payload = yield* this.#lift(place, value);
      if (payload === NONE) continue;
      lifted++;
      yield payload;
    }
  }

  *#values({ right, keyword, part, place }: Finding, isRefused: (value: unknown) => boolean): Generator {
    const { left } = place;
    yield* listedAt(place).filter(isRefused);
    yield* this.#fitted(left, { right, keyword, part });
    yield* this.#sampler.samples(left);
    const optional = left.shapes.flatMap(({ properties }) => [...properties.keys()]).slice(0, MAX_OPTIONAL);
    for (const name of optional) yield* this.#having(left, name);
    yield* this.#havingOthers(left, right);
    for (const index of [0, 1]) {
      const item = yield* this.#sampler.sample(left.item(index));
      if (item !== NONE) yield* this.#sampler.samples(left, { items: new Map([[index, item]]) });
    }
  }

  /** Values made for the keyword: just beyond its limit. */
  *#fitted(left: Case, { right, keyword, part }: Pick<Finding, "right" | "keyword" | "part">): Generator {
    const limit = right.value(keyword);
    switch (keyword) {
      case "pattern":
        yield* this.#text(left, { notMatching: [limit as string] });
        return;
      case "minLength":
        yield* this.#text(left, { maxLength: (limit as number) - 1 });
        return;
      case "maxLength":
        yield* this.#text(left, { minLength: (limit as number) + 1 });
        return;
      case "maximum":
      case "exclusiveMaximum":
      case "minimum":
      case "exclusiveMinimum":
        for (const away of [0, 1, -1, 0.5, -0.5, 0.01, -0.01]) yield (limit as number) + away;
        return;
      case "multipleOf":
        for (const times of [0.5, 1.5, 0.1, 1.1]) yield (limit as number) * times;
        return;
      case "maxItems":
        yield* this.#longer(left, (limit as number) + 1);
        return;
      case "uniqueItems": {
        const asked = left.shapes.flatMap(({ contains }) => contains ?? []);
        const item = yield* this.#sampler.sample(left.item(0).with({ all: asked }));
        if (item !== NONE)
          yield* this.#sampler.samples(left, {
            items: new Map([
              [0, item],
              [1, item],
            ]),
          });
        return;
      }
      case "maxProperties":
        yield* this.#wider(left, (limit as number) + 1);
        return;
      case "dependencies":
        yield* this.#sampler.samples(left.with({ present: [String(part)] }));
        return;
      case "additionalProperties":
      case "properties":
        if (part !== undefined) yield* this.#having(left, String(part));
        // Those with listed members only are accepted still, and may be as many as are tried.
        else if (keyword === "additionalProperties") yield* this.#havingOthers(left, right);
        return;
      case "propertyNames": {
        const names =
          factsOf(left.name()).values ?? left.shapes.flatMap(({ properties }) => [...properties.keys()]);
        for (const name of names as string[]) {
          if (!accepts(right.propertyNames!, name)) yield* this.#having(left, name);
        }
        return;
      }
      case "oneOf":
        // What more than one branch takes; then, as with `anyOf`, what none does.
        for (const [index, branch] of right.oneOf.slice(0, MAX_OVERLAPS).entries()) {
          for (const other of right.oneOf.slice(index + 1, MAX_OVERLAPS)) {
            if (!clash(branch, other)) yield* this.#sampler.samples(left.with({ all: [branch, other] }));
          }
        }
        yield* this.#sampler.samples(left.with({ none: right.oneOf }));
        return;
      case "anyOf":
        yield* this.#sampler.samples(left.with({ none: right.anyOf }));
        return;
      case "not":
        yield* this.#sampler.samples(left.with({ all: [right.not!] }));
        return;
      case "if":
        if (right.then !== undefined) {
          yield* this.#sampler.samples(left.with({ all: [right.if!], none: [right.then] }));
        }
        if (right.else !== undefined) {
          yield* this.#sampler.samples(left.with({ none: [right.if!, right.else] }));
        }
        return;
      case "contains":
        yield* this.#without(left, right.contains!);
        return;
      default:
    }
  }

  *#text(left: Case, such: { notMatching?: string[]; minLength?: number; maxLength?: number }): Generator {
    const { patterns, minLength, maxLength } = factsOf(left);
    const [least, most] = [
      Math.max(minLength, such.minLength ?? 0),
      Math.min(maxLength, such.maxLength ?? Infinity),
    ];
    const { notMatching = [] } = such;
    const wanted = { matching: patterns, notMatching, minLength: least, maxLength: most };
    const found = yield* this.#texts.find(wanted);
    if (typeof found === "object") yield found.text;
    if (least <= 10_000 && patterns.length === 0) yield "a".repeat(least);
  }

  *#having(left: Case, name: string | undefined): Generator {
    if (name === undefined) return;
    for (const value of this.#sampler.samples(left.member(name))) {
      if (value === undefined) yield;
      else yield* this.#sampler.samples(left, { members: { [name]: value } });
    }
  }

  *#havingOthers(left: Case, right: SchemaNode): Generator {
    for (const other of yield* otherNames(left, right, this.#texts)) yield* this.#having(left, other.name);
  }

  /** Lists of which no item conforms to the schema. */
  *#without(left: Case, right: SchemaNode): Generator {
    const length = Math.max(1, factsOf(left).minItems);
    if (length > MAX_ITEMS) return;
    const items = new Map<number, unknown>();
    for (let index = 0; index < length; index++) {
      const item = yield* this.#sampler.sample(left.item(index).with({ none: [right] }));
      if (item === NONE) return;
      items.set(index, item);
    }
    yield* this.#sampler.samples(left, { items });
  }

  *#longer(left: Case, length: number): Generator {
    if (length > MAX_ITEMS) return;
    spend(length * STEPS_PER_ITEM);
    const { unique } = factsOf(left);
    const items = new Map<number, unknown>();
    for (let index = 0; index < length; index++) {
      const others = unique ? [...items.values()] : [];
      const value = yield* this.#sampler.another(left.item(index), others);
      if (value === NONE) return;
      items.set(index, value);
    }
    yield* this.#sampler.samples(left, { items });
  }

  *#wider(left: Case, size: number): Generator {
    const names = left.shapes.flatMap(({ properties }) => [...properties.keys()]);
    for (let more = 0; names.length < size && more < MAX_ITEMS; more++) names.push(`member${more}`);
    const members: Record<string, unknown> = {};
    for (const name of names.slice(0, size)) {
      const value = yield* this.#sampler.sample(left.member(name));
      if (value !== NONE) members[name] = value;
    }
    yield* this.#sampler.samples(left, { members });
  }

  /** The smallest payload around a value at a place. */
  *#lift({ parent, step }: Place, value: unknown): Steps<unknown> {
    if (parent === undefined) return value;
    const members = step === NAME ? yield* this.#named(parent, String(value)) : { [String(step)]: value };
    if (members === undefined) return NONE;
    const wish = typeof step === "number" ? { items: new Map([[step, value]]) } : { members };
    const around = yield* this.#sampler.sample(parent.left, wish);
    return around === NONE ? NONE : yield* this.#lift(parent, around);
  }

  *#named({ left }: Place, name: string): Steps<Record<string, unknown> | undefined> {
    const value = yield* this.#sampler.sample(left.member(name));
    return value === NONE ? undefined : { [name]: value };
  }
}

/** The values there, where they are listed, or those there in what is listed around it. */
function listedAt({ left, parent, step }: Place): readonly unknown[] {
  const { values } = factsOf(left);
  if (values !== undefined || parent === undefined) return values ?? [];
  return listedAt(parent).flatMap((around) => {
    if (typeof around !== "object" || around === null) return [];
    if (step === NAME) return Object.keys(around);
    return Object.hasOwn(around, step) ? [(around as Record<string | number, unknown>)[step]] : [];
  });
}
