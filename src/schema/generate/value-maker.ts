import { type Bounds, boundsOf, containsValue } from "../compatibility/bounds.ts";
import type { Alternatives, Conjunction } from "../compatibility/conjunction.ts";
import { matches } from "../compatibility/evaluate.ts";
import { isObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { SchemaNode } from "../node.ts";
import { ANY, canonicalText, NUMBER, TYPE } from "../validate/values.ts";
import type { TextWitness } from "../patterns/search.ts";
import { numberFor, textFor, word } from "./scalars.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Levels of the flattest value of each schema, as far as known; infinite where no value ends. */
export type MinDepths = ReadonlyMap<SchemaNode, number>;

/** Turns at a value whose choices may be made otherwise. */
const TURNS = 12;
const STEPS_PER_TURN = 20;
const STEPS_PER_NUMBER = 50;
/** Levels a payload may have at most. */
const MAX_DEPTH = 64;
/** How often a value that the schema names as an example, or as the default, is taken. */
const EXAMPLE_SHARE = 0.75;
const DEFAULT_SHARE = 0.25;
const NULL_SHARE = 0.2;
const OPTIONAL_SHARE = 0.6;
/** Tries at an unlisted name, beyond those needed, and at an item that differs from the others. */
const NAME_TRIES = 16;
const UNIQUE_TRIES = 12;
const MORE_ITEMS = 2;

/** How much each time that a branch was taken counts, and that no value of it ends; a level counts as one. */
const TAKEN_RANK = 1e4;
const ENDLESS_RANK = 1e9;

/** The types that are picked from: integers and fractions are one to who writes a schema. */
const KINDS = [TYPE.boolean, NUMBER, TYPE.string, TYPE.array, TYPE.object];

interface MakerOptions {
  readonly random: SeededRandom;
  readonly texts: TextWitness;
  readonly minDepths: MinDepths;
  /** From this depth on values are as short as they may be. */
  readonly minimalFrom: number;
  readonly conforms: (payload: unknown) => boolean;
}

/** Makes a payload from what its schemas say together. All values but `undefined`, which stands for none, are JSON. */
export class ValueMaker {
  readonly #random: SeededRandom;
  readonly #options: MakerOptions;

  constructor(options: MakerOptions) {
    this.#random = options.random;
    this.#options = options;
  }

  /** @throws `StepsExceeded` */
  value(one: Conjunction, depth: number): unknown {
    if (depth >= MAX_DEPTH || boundsOf(one).types === 0) return undefined;
    const taken = new Map<string, number>();
    for (let turn = 0; turn < TURNS; turn++) {
      spend(STEPS_PER_TURN);
      const decided = this.#decided(one, depth, taken);
      if (decided === undefined) continue;
      const example = this.#example(decided);
      const value = example === undefined ? this.#made(decided, depth) : example;
      if (value !== undefined && this.#fits(decided, value, depth, example !== undefined)) return value;
      // Another turn would differ only by chance, and inner values have had several turns.
      const isCertain = one.alternatives.length + one.negated.length === 0 && example === undefined;
      if (isCertain && turn > 0) return undefined;
    }
    return undefined;
  }

  #fits(decided: Conjunction, value: unknown, depth: number, isExample: boolean): boolean {
    if (depth === 0) return this.#options.conforms(value);
    return isExample
      ? containsValue(decided, value)
      : decided.negated.every((negated) => !matches(negated, value));
  }

  #isMinimal(depth: number): boolean {
    return depth >= this.#options.minimalFrom;
  }

  /**
   * The conjunction with a branch of each alternative chosen.
   * @param taken how often each was chosen for this value without success
   */
  #decided(one: Conjunction, depth: number, taken: Map<string, number>): Conjunction | undefined {
    const [choice] = one.alternatives;
    if (choice === undefined) return one;
    for (const index of this.#ranked(choice, depth, taken)) {
      const way = one.with(choice.branch(index), choice);
      if (boundsOf(way).types === 0) continue;
      const key = `${choice.key} ${index}`;
      taken.set(key, (taken.get(key) ?? 0) + 1);
      return this.#decided(way, depth, taken);
    }
    return undefined;
  }

  /** The branches in the order they are tried: those that were not yet, and endless ones last. */
  #ranked(choice: Alternatives, depth: number, taken: Map<string, number>): number[] {
    spend(choice.count);
    const rank = (index: number): number => {
      const minDepth = this.#minDepth(choice.branch(index).nodes ?? []);
      if (minDepth === Infinity) return ENDLESS_RANK;
      const times = taken.get(`${choice.key} ${index}`) ?? 0;
      return times * TAKEN_RANK + (this.#isMinimal(depth) ? minDepth : 0);
    };
    const indexes = this.#random.shuffled(Array.from({ length: choice.count }, (_, index) => index));
    const ranks = new Map(indexes.map((index) => [index, rank(index)]));
    return indexes.toSorted((one, other) => ranks.get(one)! - ranks.get(other)!);
  }

  #minDepth(nodes: readonly SchemaNode[]): number {
    return Math.max(0, ...nodes.map((node) => this.#options.minDepths.get(node) ?? Infinity));
  }

  /** One of the schemas' own examples or defaults. */
  #example({ nodes }: Conjunction): unknown {
    const schemas = nodes.map(({ schema }) => schema).filter(isObject);
    const examples = schemas.flatMap(({ examples: listed }) => (Array.isArray(listed) ? listed : []));
    if (examples.length > 0 && this.#random.chance(EXAMPLE_SHARE)) return this.#random.pick(examples);
    const defaults = schemas.filter((schema) => "default" in schema).map((schema) => schema["default"]);
    if (defaults.length > 0 && this.#random.chance(DEFAULT_SHARE)) return this.#random.pick(defaults);
    return undefined;
  }

  #made(one: Conjunction, depth: number): unknown {
    const bounds = boundsOf(one);
    const { values } = bounds;
    if (values !== undefined) return values.length === 0 ? undefined : this.#random.pick(values);
    switch (this.#type(one, bounds.types, depth)) {
      case TYPE.null:
        return null;
      case TYPE.boolean:
        return this.#random.chance(0.5);
      case NUMBER:
        spend(STEPS_PER_NUMBER);
        return numberFor(bounds, this.#random);
      case TYPE.string:
        return textFor(bounds, this.#options.texts, this.#random);
      case TYPE.array:
        return this.#list(one, bounds, depth);
      default:
        return this.#object(one, bounds, depth);
    }
  }

  #type({ nodes }: Conjunction, possible: number, depth: number): number {
    const isStated = nodes.some((node) => node.value("type") !== undefined);
    const types = isStated ? possible : likelyTypes(possible, nodes);
    const others = types & ~TYPE.null;
    const isNull = others === 0 || this.#isMinimal(depth) || this.#random.chance(NULL_SHARE);
    if (others !== types && isNull) return TYPE.null;
    const flat = others & ~(TYPE.array | TYPE.object);
    const wanted = this.#isMinimal(depth) && flat !== 0 ? flat : others;
    return this.#random.pick(KINDS.filter((kind) => (wanted & kind) !== 0));
  }

  /** An object with all required properties, some optional ones, and others only to reach `minProperties`. */
  #object(one: Conjunction, bounds: Bounds, depth: number): unknown {
    const members = new Map<string, unknown>();
    const names = one.name();
    const add = (name: string): boolean => {
      if (members.has(name)) return true;
      if (!names.nodes.every((node) => matches(node, name))) return false;
      const value = this.value(one.member(name), depth + 1);
      if (value !== undefined) members.set(name, value);
      return value !== undefined;
    };
    for (const name of bounds.required) if (!add(name)) return undefined;
    const listed = new Set(one.nodes.flatMap(({ properties }) => [...properties.keys()]));
    for (const name of this.#random.shuffled([...listed])) {
      if (members.size >= bounds.maxProperties) break;
      const isWanted = !this.#isMinimal(depth) && this.#random.chance(OPTIONAL_SHARE);
      if (isWanted || members.size < bounds.minProperties) add(name);
    }
    const wished = listed.size === 0 && isMap(one) && !this.#isMinimal(depth) ? this.#random.whole(1, 2) : 0;
    const size = Math.min(bounds.maxProperties, Math.max(bounds.minProperties, wished));
    for (let tries = 0; members.size < size && tries < size + NAME_TRIES; tries++) {
      spend(STEPS_PER_TURN);
      const name = this.#name(one, tries, depth);
      if (name !== undefined) add(name);
    }
    if (members.size < bounds.minProperties || members.size > bounds.maxProperties) return undefined;
    const ordered = [...listed].filter((name) => members.has(name));
    return Object.fromEntries(
      [...new Set([...ordered, ...members.keys()])].map((name) => [name, members.get(name)]),
    );
  }

  #name(one: Conjunction, tries: number, depth: number): string | undefined {
    const names = one.name();
    const patterns = one.nodes.flatMap(({ patternProperties }) => [...patternProperties.keys()]);
    const isClosed = one.nodes.some(({ additionalProperties }) => additionalProperties?.allowsNone === true);
    if (patterns.length > 0 && (isClosed || this.#random.chance(0.5))) {
      const bounds = { ...boundsOf(names), patterns: [this.#random.pick(patterns)] };
      return textFor(bounds, this.#options.texts, this.#random);
    }
    if (names.nodes.length > 0) return this.value(names, depth + 1) as string | undefined;
    return tries < NAME_TRIES ? word(this.#random) : `${word(this.#random)}_${tries}`;
  }

  /** A list of few items; a tuple has all its items where it may. */
  #list(one: Conjunction, { minItems, maxItems, unique }: Bounds, depth: number): unknown {
    spend(STEPS_PER_TURN + minItems);
    const contained = one.nodes.flatMap(({ contains }) => contains ?? []);
    const least = Math.max(minItems, contained.length);
    const length = Math.min(maxItems, this.#length(one, least, depth));
    const items: unknown[] = [];
    const texts = new Set<string>();
    while (items.length < length) {
      const plain = one.item(items.length);
      const wanted = contained[items.length];
      const item = this.#item(
        wanted === undefined ? plain : plain.with({ nodes: [wanted] }),
        depth,
        unique ? texts : undefined,
      );
      // An index that allows no item ends the list.
      if (item === undefined) return items.length < least ? undefined : items;
      items.push(item);
    }
    return items;
  }

  #length({ nodes }: Conjunction, least: number, depth: number): number {
    if (this.#isMinimal(depth)) return least;
    const listed = Math.max(0, ...nodes.map(({ tuple }) => tuple?.length ?? 0));
    if (listed > 0) return Math.max(least, listed);
    return this.#random.whole(Math.max(least, 1), least + MORE_ITEMS);
  }

  /** @param texts those of the items before, where none may be there twice */
  #item(one: Conjunction, depth: number, texts: Set<string> | undefined): unknown {
    for (let tries = 0; tries < UNIQUE_TRIES; tries++) {
      const item = this.value(one, depth + 1);
      if (item === undefined || texts === undefined) return item;
      const text = canonicalText(item);
      if (texts.has(text)) continue;
      texts.add(text);
      return item;
    }
    return undefined;
  }
}

function isMap({ nodes }: Conjunction): boolean {
  return nodes.some(
    ({ additionalProperties, patternProperties }) =>
      (additionalProperties !== undefined && !additionalProperties.allowsNone) || patternProperties.size > 0,
  );
}

/** Where no schema states a type: those that the keywords are about, or else any but `null` and lists. */
function likelyTypes(types: number, nodes: readonly SchemaNode[]): number {
  let hinted = 0;
  for (const keyword of nodes.flatMap((node) => node.keywords)) {
    const about = keyword === "format" ? TYPE.string : typesAbout(keyword);
    if (about !== ANY) hinted |= about;
  }
  return types & hinted || types & ~(TYPE.null | TYPE.array) || types;
}
