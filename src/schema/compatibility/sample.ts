import { spend } from "../budget.ts";
import type { Task } from "../task.ts";
import { accepts } from "./accepts.ts";
import type { Case } from "./case.ts";
import { factsOf, isOf } from "./facts.ts";
import type { Facts } from "./facts.ts";
import { numbersFor, textsFor } from "./scalar-samples.ts";
import { Stretch } from "./stretch.ts";
import type { TextSearch } from "./text-search.ts";
import { TYPE } from "./types.ts";

/** Stands for a value that was not found; every JSON value is one that may be. */
export const NONE = Symbol("none");
export type Found = unknown;

/** What a sample must hold. */
export interface Wish {
  readonly members?: Readonly<Record<string, unknown>>;
  readonly items?: ReadonlyMap<number, unknown>;
}

/** The simplest first: a sample is read by a person. */
const ORDER = [TYPE.string, TYPE.integer, TYPE.object, TYPE.array, TYPE.boolean, TYPE.null, TYPE.fraction];
const MAX_WAYS = 24;
const MAX_DEPTH = 48;
const MAX_FILLED = 300;
/** Schemas that must not hold, and members of each, of which another value is tried. */
const MAX_SPOILED = 4;

/** Makes small values of a case. Tries the plain ways only, and checks what it made, so that `NONE` means nothing. */
export class Sampler {
  readonly #texts: TextSearch;
  readonly #kept = new Map<string, Found>();
  readonly #stretch = new Stretch();
  #depth = 0;

  constructor(texts: TextSearch) {
    this.#texts = texts;
  }

  *sample(one: Case, wish?: Wish): Task<Found> {
    if (wish !== undefined) return yield* this.#look(one, wish);
    if (this.#kept.has(one.key)) return this.#kept.get(one.key);
    this.#kept.set(one.key, NONE);
    const found = yield* this.#look(one, {});
    this.#kept.set(one.key, found);
    return found;
  }

  /**
   * One value for each way the case's choices may go and each type; `undefined`, which no JSON value is, where it may
   * wait.
   */
  *samples(one: Case, wish: Wish = {}): Generator {
    const { values } = factsOf(one);
    if (values !== undefined) {
      yield* values.filter((value) => grants(value, wish));
      return;
    }
    for (const way of waysOf(one)) {
      if (this.#stretch.isOver()) yield undefined;
      const facts = factsOf(way);
      if (facts.values !== undefined) {
        yield* facts.values.filter((value) => grants(value, wish));
        continue;
      }
      for (const type of ORDER) {
        if ((facts.types & type) === 0 || !suits(type, wish)) continue;
        for (const value of yield* this.#made(way, facts, type, wish)) if (isOf(one, value)) yield value;
      }
    }
  }

  *#look(one: Case, wish: Wish): Task<Found> {
    if (this.#depth >= MAX_DEPTH) return NONE;
    this.#depth++;
    try {
      for (const value of this.samples(one, wish)) {
        if (value !== undefined) return value;
        yield;
      }
      return NONE;
    } finally {
      this.#depth--;
    }
  }

  *#made(one: Case, facts: Facts, type: number, wish: Wish): Task<unknown[]> {
    spend(4);
    switch (type) {
      case TYPE.string:
        return yield* textsFor(facts, this.#texts);
      case TYPE.integer:
      case TYPE.fraction:
        return numbersFor(facts, type);
      case TYPE.boolean:
        return [false, true];
      case TYPE.null:
        return [null];
      case TYPE.array:
        return [yield* this.#list(one, facts, wish)].filter((value) => value !== undefined);
      default:
        return yield* this.#objects(one, facts, wish);
    }
  }

  /** An object, and where that conforms to what it must not conform to, others that do not in one member. */
  *#objects(one: Case, facts: Facts, wish: Wish): Task<unknown[]> {
    const plain = yield* this.#object(one, facts, wish);
    if (plain === undefined) return [];
    const made: unknown[] = [plain];
    for (const refused of one.none.slice(0, MAX_SPOILED)) {
      if (!accepts(refused, plain)) continue;
      for (const [name, inner] of [...(refused.reference ?? refused).properties].slice(0, MAX_SPOILED)) {
        if (Object.hasOwn(wish.members ?? {}, name)) continue;
        const value = yield* this.sample(one.member(name).with({ none: [inner] }));
        if (value !== NONE) made.push({ ...plain, [name]: value });
      }
    }
    return made;
  }

  *#object(one: Case, facts: Facts, { members = {} }: Wish): Task<object | undefined> {
    const made = new Map<string, unknown>();
    for (const name of [...facts.required, ...Object.keys(members)]) {
      if (made.has(name)) continue;
      const value = Object.hasOwn(members, name) ? members[name] : yield* this.sample(one.member(name));
      if (value === NONE) return undefined;
      made.set(name, value);
    }
    const known = one.shapes.flatMap(({ properties }) => [...properties.keys()]);
    const made_up = Array.from(
      { length: Math.min(facts.minProperties, MAX_FILLED) },
      (_, at) => `member${at}`,
    );
    for (const name of [...known, ...made_up]) {
      if (made.size >= facts.minProperties) break;
      if (made.has(name)) continue;
      const value = yield* this.sample(one.member(name));
      if (value !== NONE) made.set(name, value);
    }
    return Object.fromEntries(made);
  }

  *#list(one: Case, facts: Facts, { items = new Map() }: Wish): Task<unknown[] | undefined> {
    const length = Math.max(facts.minItems, ...[...items.keys()].map((index) => index + 1), 0);
    if (length > MAX_FILLED) return undefined;
    const made: unknown[] = [];
    const contained = one.shapes.flatMap(({ contains }) => contains ?? []);
    for (let index = 0; index < length; index++) {
      const plain = one.item(index);
      const asked = contained[index];
      const item = asked === undefined ? plain : plain.with({ all: [asked] });
      const value = items.has(index) ? items.get(index) : yield* this.another(item, facts.unique ? made : []);
      if (value === NONE) return undefined;
      made.push(value);
    }
    for (const asked of contained) {
      if (made.some((item) => accepts(asked, item))) continue;
      const item = one.item(made.length).with({ all: [asked] });
      const value = yield* this.another(item, facts.unique ? made : []);
      if (value === NONE) return undefined;
      made.push(value);
    }
    return made;
  }

  /** A value that is not among those there already. */
  *another(one: Case, others: readonly unknown[]): Task<Found> {
    if (others.length === 0) return yield* this.sample(one);
    const taken = new Set(others.map((value) => JSON.stringify(value)));
    for (const value of this.samples(one)) {
      if (value === undefined) yield;
      else if (!taken.has(JSON.stringify(value))) return value;
    }
    return NONE;
  }
}

/** The case with its choices made, one way after the other. */
function* waysOf(one: Case): Generator<Case> {
  let left = MAX_WAYS;
  function* decide(open: Case): Generator<Case> {
    const [choice] = open.choices;
    if (choice === undefined) {
      if (left-- > 0) yield open;
      return;
    }
    for (const way of open.ways(choice)) {
      if (left <= 0) return;
      if (factsOf(way).types !== 0) yield* decide(way);
    }
  }
  yield* decide(one);
}

function suits(type: number, { members, items }: Wish): boolean {
  if (members !== undefined) return type === TYPE.object;
  return items === undefined || type === TYPE.array;
}

function grants(value: unknown, { members = {}, items = new Map() }: Wish): boolean {
  const wanted = [
    ...Object.entries(members),
    ...[...items].map(([index, item]) => [String(index), item] as const),
  ];
  return wanted.every(
    ([name, member]) =>
      typeof value === "object" &&
      value !== null &&
      JSON.stringify((value as Record<string, unknown>)[name]) === JSON.stringify(member),
  );
}
