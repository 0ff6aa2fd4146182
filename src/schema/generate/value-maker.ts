import { type Bounds, boundsOf, containsValue } from "../compatibility/bounds.ts";
import type { Alternatives, Conjunction } from "../compatibility/conjunction.ts";
import { finiteValuesOf, typesOf } from "../compatibility/unions.ts";
import { matches } from "../validate/evaluate.ts";
import { isObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import type { TextWitness } from "../patterns/search.ts";
import { ANY, NUMBER, TYPE } from "../validate/values.ts";
import { numbersFor, textsFor, word } from "./scalars.ts";
import type { SeededRandom } from "./seeded-random.ts";

export const NOT_FOUND = Symbol("none");

/** Members by name, or items by index, that a value must have. */
type Fixed = ReadonlyMap<string | number, unknown>;
const NONE_FIXED: Fixed = new Map();

/** What chance does to the values. */
export interface Variety {
  readonly random: SeededRandom;
  /** Values are as short as they may be from this depth on. */
  readonly minimalFrom: number;
}

/** Levels a payload may have at most. */
const MAX_DEPTH = 64;
const MAX_EXPANSIONS = 24;
/** Members and items beyond those that a schema names. */
const MAX_FILLED = 1_000;
/** Schemas that must not hold, and members of each, of which another value is tried. */
const MAX_VARIED = 4;
/** The simplest type first: a person reads the counterexample. */
const ORDER = [TYPE.string, TYPE.integer, TYPE.object, TYPE.array, TYPE.boolean, TYPE.null, TYPE.fraction];
/** The types that are picked from: integers and fractions are one to who writes a schema. */
const KINDS = [TYPE.null, TYPE.boolean, NUMBER, TYPE.string, TYPE.array, TYPE.object];

/** Deeper than any value. */
const ENDLESS = 1e9;

/** Turns at a value whose choices may be made otherwise. Any other value differs only by chance. */
const TURNS = 12;
const PLAIN_TURNS = 2;
const STEPS_PER_TURN = 20;
/** Tries at an unlisted name, beyond those needed. */
const NAME_TRIES = 16;
const MORE_ITEMS = 2;
const MORE_MEMBERS = 2;
/** How often a value that the schema names, as an example or as the default, is taken. */
const EXAMPLE_SHARE = 0.5;
const OPTIONAL_SHARE = 0.6;

/**
 * Makes values of a conjunction and checks them: without variety small ones, in an order; with it one by chance in each
 * turn. It tries few, so `NOT_FOUND` proves nothing.
 */
export class ValueMaker {
  readonly #texts: TextWitness;
  readonly #variety: Variety | undefined;
  readonly #random: SeededRandom | undefined;
  readonly #found = new Map<string, unknown>();
  #depth = 0;

  constructor(texts: TextWitness, variety?: Variety) {
    this.#texts = texts;
    this.#variety = variety;
    this.#random = variety?.random;
  }

  /** @throws `StepsExceeded` */
  witness(one: Conjunction, fixed = NONE_FIXED): unknown {
    if (fixed.size > 0 || this.#variety !== undefined) return this.#first(one, fixed);
    if (this.#found.has(one.key)) return this.#found.get(one.key);
    this.#found.set(one.key, NOT_FOUND);
    const value = this.#first(one, fixed);
    this.#found.set(one.key, value);
    return value;
  }

  /** Values that belong to the conjunction; with variety those at the root may not, and the caller checks them. */
  *witnesses(one: Conjunction, fixed = NONE_FIXED): Generator {
    const isChecked = this.#variety === undefined || this.#depth > 0;
    for (const way of this.#ways(one)) {
      for (const value of this.#valuesOf(way, fixed))
        if (!isChecked || containsValue(one, value)) yield value;
    }
  }

  /** A value that is not among the others. */
  another(one: Conjunction, others: readonly unknown[]): unknown {
    if (others.length === 0) return this.witness(one);
    const taken = new Set(others.map((value) => JSON.stringify(value)));
    for (let turn = 0; turn < (this.#variety === undefined ? 1 : TURNS); turn++) {
      for (const value of this.witnesses(one)) if (!taken.has(JSON.stringify(value))) return value;
    }
    return NOT_FOUND;
  }

  #first(one: Conjunction, fixed: Fixed): unknown {
    if (this.#depth >= MAX_DEPTH) return NOT_FOUND;
    this.#depth++;
    try {
      for (const value of this.witnesses(one, fixed)) return value;
      return NOT_FOUND;
    } finally {
      this.#depth--;
    }
  }

  /** The conjunction with its alternatives decided; with variety in an order by chance, and again. */
  *#ways(one: Conjunction): Generator<Conjunction, void> {
    if (boundsOf(one).values !== undefined) yield one;
    else if (this.#variety === undefined) yield* expansions(one);
    else {
      const isPlain = one.alternatives.length + one.negated.length === 0 && namedValues(one).length === 0;
      const turns = isPlain ? PLAIN_TURNS : TURNS;
      for (let turn = 0; turn < turns;) {
        const before = turn;
        for (const way of expansions(one, (choice) => this.#ranked(choice))) {
          spend(STEPS_PER_TURN);
          yield way;
          if (++turn >= turns) return;
        }
        if (turn === before) return;
      }
    }
  }

  *#valuesOf(way: Conjunction, fixed: Fixed): Generator {
    const random = this.#random;
    const named = random === undefined ? [] : namedValues(way);
    if (random !== undefined && named.length > 0 && random.chance(EXAMPLE_SHARE)) {
      yield random.pick(named);
      return;
    }
    const bounds = boundsOf(way);
    if (bounds.values !== undefined) {
      yield* this.#shuffled(bounds.values).filter((value) => holdsFixed(value, fixed));
      return;
    }
    for (const type of random === undefined ? ORDER : this.#kind(way, bounds.types, random)) {
      const types = bounds.types & type;
      if (types !== 0 && allowsType(type, fixed)) yield* this.#valuesOfType(way, bounds, types, fixed);
    }
  }

  /** The branches in the order they are tried: where values are to be short, the flattest first, and endless ones last. */
  #ranked(choice: Alternatives): number[] {
    spend(choice.count);
    const { random } = this.#variety!;
    const rank = (index: number): number => {
      const { nodes = [] } = choice.branch(index);
      const depth = Math.max(0, ...nodes.map(minDepthOf));
      return depth === Infinity ? ENDLESS : this.#isMinimal ? depth : 0;
    };
    const indexes = random.shuffled(Array.from({ length: choice.count }, (_, index) => index));
    const ranks = new Map(indexes.map((index) => [index, rank(index)]));
    return indexes.toSorted((one, other) => ranks.get(one)! - ranks.get(other)!);
  }

  get #isMinimal(): boolean {
    return this.#variety === undefined || this.#depth >= this.#variety.minimalFrom;
  }

  /** One kind of value, by chance. */
  #kind({ nodes }: Conjunction, possible: number, random: SeededRandom): readonly number[] {
    const isStated = nodes.some((node) => node.value("type") !== undefined);
    const types = isStated ? possible : likelyTypes(possible, nodes);
    const flat = types & ~(TYPE.array | TYPE.object);
    const wanted = this.#isMinimal && flat !== 0 ? flat : types;
    return [random.pick(KINDS.filter((kind) => (wanted & kind) !== 0))];
  }

  /** @param types one of them, or both of numbers */
  #valuesOfType(one: Conjunction, bounds: Bounds, types: number, fixed: Fixed): Iterable<unknown> {
    spend(4);
    if ((types & NUMBER) !== 0) return numbersFor({ ...bounds, types }, this.#random);
    switch (types) {
      case TYPE.string:
        return textsFor(bounds, this.#texts, this.#random);
      case TYPE.boolean:
        return this.#shuffled([false, true]);
      case TYPE.null:
        return [null];
      case TYPE.array:
        return this.#lists(one, bounds, fixed);
      default:
        return this.#objects(one, bounds, fixed);
    }
  }

  #shuffled<T>(list: readonly T[]): readonly T[] {
    return this.#random === undefined ? list : this.#random.shuffled(list);
  }

  /** An object, and if it matches a negated schema, others with one member that does not. */
  #objects(one: Conjunction, bounds: Bounds, fixed: Fixed): unknown[] {
    const plain = this.#object(one, bounds, fixed);
    if (plain === undefined) return [];
    const made: unknown[] = [plain];
    for (const negated of one.negated.slice(0, MAX_VARIED)) {
      if (!matches(negated, plain)) continue;
      for (const [name, inner] of [...negated.resolved.properties].slice(0, MAX_VARIED)) {
        if (fixed.has(name)) continue;
        const value = this.witness(one.member(name).with({ negated: [inner] }));
        if (value !== NOT_FOUND) made.push({ ...plain, [name]: value });
      }
    }
    return made;
  }

  /** An object with all required properties, by chance some optional ones, and others only to reach `minProperties`. */
  #object(one: Conjunction, bounds: Bounds, fixed: Fixed): object | undefined {
    const { required, minProperties, maxProperties } = bounds;
    const made = new Map<string, unknown>();
    const names = one.name();
    const add = (name: string): boolean => {
      if (made.has(name)) return true;
      if (!names.nodes.every((node) => matches(node, name))) return false;
      const value = fixed.has(name) ? fixed.get(name) : this.witness(one.member(name));
      if (value === NOT_FOUND) return false;
      made.set(name, value);
      return true;
    };
    for (const name of [...required, ...(fixed.keys() as Iterable<string>)]) if (!add(name)) return undefined;
    const known = [...new Set(one.nodes.flatMap(({ properties }) => [...properties.keys()]))];
    for (const name of this.#shuffled(known)) {
      if (made.size >= maxProperties) break;
      const isWished = !this.#isMinimal && this.#random!.chance(OPTIONAL_SHARE);
      if (made.size < minProperties || isWished) add(name);
    }
    const wished = known.length === 0 && isMap(one) && !this.#isMinimal ? MORE_MEMBERS : 0;
    const size = Math.min(maxProperties, Math.max(minProperties, wished));
    const most = Math.min(size, MAX_FILLED) + NAME_TRIES;
    for (let tries = 0; made.size < size && tries < most; tries++) {
      spend(1);
      const name = this.#name(one, tries);
      if (name !== undefined) add(name);
    }
    if (made.size < minProperties) return undefined;
    const inOrderOfSchema = new Set([...known.filter((name) => made.has(name)), ...made.keys()]);
    return Object.fromEntries(Array.from(inOrderOfSchema, (name) => [name, made.get(name)]));
  }

  /** One that no schema lists. */
  #name(one: Conjunction, tries: number): string | undefined {
    const random = this.#random;
    if (random === undefined) return `member${tries}`;
    const names = one.name();
    const patterns = one.nodes.flatMap(({ patternProperties }) => [...patternProperties.keys()]);
    const isClosed = one.nodes.some(({ additionalProperties }) => additionalProperties?.allowsNone === true);
    if (patterns.length > 0 && (isClosed || random.chance(0.5))) {
      const [name] = textsFor({ ...boundsOf(names), patterns: [random.pick(patterns)] }, this.#texts, random);
      return name;
    }
    if (names.nodes.length === 0) return tries < NAME_TRIES ? word(random) : `${word(random)}_${tries}`;
    const name = this.witness(names);
    return typeof name === "string" ? name : undefined;
  }

  /** A list of few items; by chance a tuple has all its items where it may. */
  #lists(one: Conjunction, { minItems, maxItems, unique }: Bounds, fixed: Fixed): unknown[][] {
    const contained = one.nodes.flatMap(({ contains }) => contains ?? []);
    const least = Math.max(minItems, ...[...(fixed.keys() as Iterable<number>)].map((index) => index + 1));
    if (least > MAX_FILLED) return [];
    spend(STEPS_PER_TURN + least);
    const length = Math.min(maxItems, this.#length(one, least, contained.length));
    const made: unknown[] = [];
    while (made.length < length) {
      const plain = one.item(made.length);
      const wanted = contained[made.length];
      const item = wanted === undefined ? plain : plain.with({ nodes: [wanted] });
      const value = fixed.has(made.length) ? fixed.get(made.length) : this.another(item, unique ? made : []);
      // An index that allows no item ends the list.
      if (value === NOT_FOUND && made.length < least) return [];
      if (value === NOT_FOUND) break;
      made.push(value);
    }
    for (const wanted of contained) {
      if (made.some((item) => matches(wanted, item))) continue;
      const item = one.item(made.length).with({ nodes: [wanted] });
      const value = this.another(item, unique ? made : []);
      if (value === NOT_FOUND) return [];
      made.push(value);
    }
    return [made];
  }

  #length({ nodes }: Conjunction, least: number, contained: number): number {
    if (this.#isMinimal) return least;
    const places = Math.max(0, ...nodes.map(({ tuple }) => tuple?.length ?? 0));
    if (places > 0) return Math.max(least, places, contained);
    return this.#random!.whole(Math.max(least, contained, 1), Math.max(least, contained) + MORE_ITEMS);
  }
}

/**
 * The conjunction with all alternatives decided, in many ways.
 * @param order in which the branches of an alternative are tried
 */
function* expansions(
  one: Conjunction,
  order?: (choice: Alternatives) => readonly number[],
): Generator<Conjunction, void> {
  let remaining = MAX_EXPANSIONS;
  function* decide(open: Conjunction): Generator<Conjunction, void> {
    const [choice] = open.alternatives;
    if (choice === undefined) {
      if (remaining-- > 0) yield open;
      return;
    }
    for (const way of open.expand(choice, order?.(choice))) {
      if (remaining <= 0) return;
      if (boundsOf(way).types !== 0) yield* decide(way);
    }
  }
  yield* decide(one);
}

/** The schemas' own examples and defaults. */
function namedValues({ nodes }: Conjunction): unknown[] {
  return nodes.flatMap(({ schema }) => {
    if (!isObject(schema)) return [];
    const examples = Array.isArray(schema["examples"]) ? (schema["examples"] as unknown[]) : [];
    return "default" in schema ? [...examples, schema["default"]] : examples;
  });
}

function allowsType(type: number, fixed: Fixed): boolean {
  const [step] = fixed.keys();
  return step === undefined || type === (typeof step === "string" ? TYPE.object : TYPE.array);
}

function holdsFixed(value: unknown, fixed: Fixed): boolean {
  return [...fixed].every(
    ([step, inner]) =>
      typeof value === "object" &&
      value !== null &&
      JSON.stringify((value as Record<string | number, unknown>)[step]) === JSON.stringify(inner),
  );
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

/**
 * Levels of the flattest value of a schema, about: the way out of a recursive one is the branch that ends soonest. Infinite
 * where no value ends, and what leads back to a schema that is being looked at counts as that.
 */
const minDepthOf: (node: SchemaNode) => number = memoize(findMinDepth, { value: Infinity });

function findMinDepth(node: SchemaNode): number {
  if (node.target !== undefined) return minDepthOf(node.target);
  if (node.allowsNone) return Infinity;
  const deepest = (nodes: readonly SchemaNode[]): number => Math.max(0, ...nodes.map(minDepthOf));
  const flattest = (nodes: readonly SchemaNode[]): number => Math.min(...nodes.map(minDepthOf));
  const types = finiteValuesOf(node) === undefined ? typesOf(node) : TYPE.null;
  let own = Infinity;
  if ((types & ~(TYPE.array | TYPE.object)) !== 0) own = 0;
  if ((types & TYPE.object) !== 0) {
    const required = node.required.flatMap((name) => node.properties.get(name) ?? []);
    own = Math.min(own, required.length === 0 ? 0 : 1 + deepest(required));
  }
  if ((types & TYPE.array) !== 0) {
    const minItems = Number(node.value("minItems") ?? 0);
    const items = minItems === 0 ? [] : (node.tuple?.slice(0, minItems) ?? [node.items ?? []].flat());
    own = Math.min(own, items.length === 0 ? 0 : 1 + deepest(items));
  }
  const unions = [node.anyOf, node.oneOf].filter((branches) => branches.length > 0);
  return Math.max(own, deepest(node.allOf), ...unions.map(flattest));
}
