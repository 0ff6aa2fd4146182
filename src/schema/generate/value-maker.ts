import { type Bounds, boundsOf, containsValue } from "../compatibility/bounds.ts";
import type { Conjunction } from "../compatibility/conjunction.ts";
import { matches } from "../validate/evaluate.ts";
import { isObject, typesAbout } from "../keywords.ts";
import { spend } from "../limits.ts";
import type { TextWitness } from "../patterns/search.ts";
import { ANY, NUMBER, TYPE } from "../validate/values.ts";
import { numbersFor, textsFor } from "./scalars.ts";

export const NOT_FOUND = Symbol("none");

/** Members by name, or items by index, that a value must have. */
type Fixed = ReadonlyMap<string | number, unknown>;
const NONE_FIXED: Fixed = new Map();

/** Levels a payload may have at most. */
const MAX_DEPTH = 64;
const MAX_EXPANSIONS = 24;
/** Members and items beyond those that a schema names. */
const MAX_FILLED = 1_000;
/** Schemas that must not hold, and members of each, of which another value is tried. */
const MAX_VARIED = 4;
/** The simplest type first: a person reads the counterexample. */
const ORDER = [TYPE.string, TYPE.integer, TYPE.object, TYPE.array, TYPE.boolean, TYPE.null, TYPE.fraction];
const STEPS_PER_LIST = 20;

/**
 * Makes values of a conjunction in an order, and checks them: small ones; or full ones, which have what is optional, an item where
 * there may be none, and what the schemas name as examples or defaults. It tries few, so `NOT_FOUND` proves nothing.
 */
export class ValueMaker {
  readonly #texts: TextWitness;
  /** Whether more than the least is tried, in this order. */
  readonly #forms: readonly boolean[];
  readonly #found = new Map<string, unknown>();
  #depth = 0;

  constructor(texts: TextWitness, isFull = false) {
    this.#texts = texts;
    this.#forms = isFull ? [true, false] : [false];
  }

  /** @throws `StepsExceeded` */
  witness(one: Conjunction, fixed = NONE_FIXED): unknown {
    if (fixed.size > 0) return this.#first(one, fixed);
    if (this.#found.has(one.key)) return this.#found.get(one.key);
    // A value has none of its own kind within it, or recursion would not end.
    this.#found.set(one.key, NOT_FOUND);
    const value = this.#first(one, fixed);
    this.#found.set(one.key, value);
    return value;
  }

  /** Values that belong to the conjunction. */
  *witnesses(one: Conjunction, fixed = NONE_FIXED): Generator {
    for (const way of boundsOf(one).values === undefined ? expansions(one) : [one]) {
      for (const value of this.#valuesOf(way, fixed)) if (containsValue(one, value)) yield value;
    }
  }

  /** A value that is not among the others. */
  another(one: Conjunction, others: readonly unknown[]): unknown {
    if (others.length === 0) return this.witness(one);
    const taken = new Set(others.map((value) => JSON.stringify(value)));
    for (const value of this.witnesses(one)) if (!taken.has(JSON.stringify(value))) return value;
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

  *#valuesOf(way: Conjunction, fixed: Fixed): Generator {
    const bounds = boundsOf(way);
    const named = this.#forms[0] === true ? namedValues(way) : [];
    yield* [...named, ...(bounds.values ?? [])].filter((value) => holdsFixed(value, fixed));
    if (bounds.values !== undefined) return;
    for (const type of inOrder(way)) {
      if ((bounds.types & type) !== 0 && allowsType(type, fixed))
        yield* this.#valuesOfType(way, bounds, type, fixed);
    }
  }

  *#valuesOfType(one: Conjunction, bounds: Bounds, type: number, fixed: Fixed): Generator {
    spend(4);
    if ((type & NUMBER) !== 0) yield* numbersFor({ ...bounds, types: type });
    else if (type === TYPE.string) yield* textsFor(bounds, this.#texts);
    else if (type === TYPE.boolean) yield* [false, true];
    else if (type === TYPE.null) yield null;
    else {
      for (const isFull of this.#forms) {
        if (type === TYPE.array) yield* this.#lists(one, bounds, fixed, isFull);
        else yield* this.#objects(one, bounds, fixed, isFull);
      }
    }
  }

  /** An object, and if it matches a negated schema, others with one member that does not. */
  *#objects(one: Conjunction, bounds: Bounds, fixed: Fixed, isFull: boolean): Generator {
    const plain = this.#object(one, bounds, fixed, isFull);
    if (plain === undefined) return;
    yield plain;
    for (const negated of one.negated.slice(0, MAX_VARIED)) {
      if (!matches(negated, plain)) continue;
      for (const [name, inner] of [...negated.resolved.properties].slice(0, MAX_VARIED)) {
        if (fixed.has(name)) continue;
        const value = this.witness(one.member(name).with({ negated: [inner] }));
        if (value !== NOT_FOUND) yield { ...plain, [name]: value };
      }
    }
  }

  /** An object with all required properties; a full one has the optional ones, and a map one member. */
  #object(one: Conjunction, bounds: Bounds, fixed: Fixed, isFull: boolean): object | undefined {
    const { required, minProperties, maxProperties } = bounds;
    if (minProperties > MAX_FILLED) return undefined;
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
    const most = isFull ? maxProperties : minProperties;
    for (const name of known) if (made.size < most) add(name);
    const least = isFull && known.length === 0 && isMap(one) ? 1 : minProperties;
    const size = Math.min(maxProperties, Math.max(minProperties, least));
    if (made.size < size) {
      for (const name of this.#unlistedNames(one, names)) {
        spend(1);
        if (add(name) && made.size >= size) break;
      }
    }
    if (made.size < minProperties) return undefined;
    const inOrderOfSchema = new Set([...known.filter((name) => made.has(name)), ...made.keys()]);
    return Object.fromEntries(Array.from(inOrderOfSchema, (name) => [name, made.get(name)]));
  }

  *#unlistedNames({ nodes }: Conjunction, names: Conjunction): Generator<string> {
    const bounds = boundsOf(names);
    for (const pattern of nodes.flatMap(({ patternProperties }) => [...patternProperties.keys()])) {
      yield* textsFor({ ...bounds, patterns: [...bounds.patterns, pattern] }, this.#texts);
    }
    if (names.nodes.length > 0) yield* this.witnesses(names) as Generator<string>;
    for (let number = 0; number < MAX_FILLED; number++) yield `member${number}`;
  }

  /** A list of few items; a full one has all of a tuple, or one. */
  *#lists(
    one: Conjunction,
    { minItems, maxItems, unique }: Bounds,
    fixed: Fixed,
    isFull: boolean,
  ): Generator<unknown[]> {
    // What it must contain comes behind the items that it must have.
    const contained = one.nodes
      .flatMap(({ contains }) => contains ?? [])
      .filter((wanted) => ![...fixed.values()].some((item) => matches(wanted, item)));
    const least = Math.max(minItems, ...[...(fixed.keys() as Iterable<number>)].map((index) => index + 1));
    if (least > MAX_FILLED) return;
    spend(STEPS_PER_LIST + least);
    const places = one.nodes.map(({ tuple }) => tuple?.length ?? 1);
    const most = Math.max(least, fixed.size + contained.length, ...(isFull ? places : []));
    const length = Math.min(maxItems, most);
    const made: unknown[] = [];
    while (made.length < length) {
      const plain = one.item(made.length);
      const wanted = contained[made.length - fixed.size];
      const item = wanted === undefined ? plain : plain.with({ nodes: [wanted] });
      const value = fixed.has(made.length) ? fixed.get(made.length) : this.another(item, unique ? made : []);
      // An index that allows no item ends the list.
      if (value === NOT_FOUND && made.length < least) return;
      if (value === NOT_FOUND) break;
      made.push(value);
    }
    yield made;
  }
}

/** The conjunction with all alternatives decided, in many ways. */
function* expansions(one: Conjunction): Generator<Conjunction, void> {
  let remaining = MAX_EXPANSIONS;
  function* decide(open: Conjunction): Generator<Conjunction, void> {
    const [choice] = open.alternatives;
    if (choice === undefined) {
      if (remaining-- > 0) yield open;
      return;
    }
    for (const way of open.expand(choice)) {
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

/** All types, those first that the keywords are about. */
function inOrder({ nodes }: Conjunction): readonly number[] {
  const about = nodes.flatMap((node) => node.keywords.map(typesAbout)).filter((types) => types !== ANY);
  const isLikely = (type: number): boolean => about.some((types) => (types & type) !== 0);
  return [...ORDER.filter(isLikely), ...ORDER.filter((type) => !isLikely(type))];
}
