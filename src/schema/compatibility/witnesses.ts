import { spend } from "../limits.ts";
import type { TextWitness } from "../patterns/search.ts";
import { FORMAT_EXAMPLES } from "../generate/scalars.ts";
import { INTEGER_FORMATS } from "../validate/formats.ts";
import { TYPE } from "../validate/values.ts";
import { type Bounds, boundsOf, containsNumber, containsValue } from "./bounds.ts";
import type { Conjunction } from "./conjunction.ts";
import { matches, matchesFormat, lengthOf } from "./evaluate.ts";

export const NOT_FOUND = Symbol("none");

/** Members by name, or items by index, that a witness must have. */
type Fixed = ReadonlyMap<string | number, unknown>;
const NONE_FIXED: Fixed = new Map();

/** The simplest type first: a person reads the counterexample. */
const ORDER = [TYPE.string, TYPE.integer, TYPE.object, TYPE.array, TYPE.boolean, TYPE.null, TYPE.fraction];
const MAX_EXPANSIONS = 24;
const MAX_DEPTH = 48;
const MAX_FILLED = 300;
/** Schemas that must not hold, and members of each, of which another value is tried. */
const MAX_VARIED = 4;

/** Makes small values of a conjunction and checks them. It tries simple ones only, so `NOT_FOUND` proves nothing. */
export class WitnessSearch {
  readonly #texts: TextWitness;
  readonly #found = new Map<string, unknown>();
  #depth = 0;

  constructor(texts: TextWitness) {
    this.#texts = texts;
  }

  witness(one: Conjunction, fixed = NONE_FIXED): unknown {
    if (fixed.size > 0) return this.#search(one, fixed);
    if (this.#found.has(one.key)) return this.#found.get(one.key);
    this.#found.set(one.key, NOT_FOUND);
    const found = this.#search(one, fixed);
    this.#found.set(one.key, found);
    return found;
  }

  /** Values for each expansion of the alternatives and each type. */
  *witnesses(one: Conjunction, fixed = NONE_FIXED): Generator {
    const ways = boundsOf(one).values === undefined ? expansions(one) : [one];
    for (const way of ways) {
      const bounds = boundsOf(way);
      if (bounds.values !== undefined) {
        yield* bounds.values.filter((value) => holdsFixed(value, fixed));
        continue;
      }
      for (const type of ORDER) {
        if ((bounds.types & type) === 0 || !allowsType(type, fixed)) continue;
        const values = this.#valuesOfType(way, bounds, type, fixed);
        yield* values.filter((value) => containsValue(one, value));
      }
    }
  }

  #search(one: Conjunction, fixed: Fixed): unknown {
    if (this.#depth >= MAX_DEPTH) return NOT_FOUND;
    this.#depth++;
    try {
      for (const value of this.witnesses(one, fixed)) return value;
      return NOT_FOUND;
    } finally {
      this.#depth--;
    }
  }

  #valuesOfType(one: Conjunction, bounds: Bounds, type: number, fixed: Fixed): unknown[] {
    spend(4);
    switch (type) {
      case TYPE.string:
        return textsFor(bounds, this.#texts);
      case TYPE.integer:
      case TYPE.fraction:
        return numbersFor(bounds, type);
      case TYPE.boolean:
        return [false, true];
      case TYPE.null:
        return [null];
      case TYPE.array:
        return [this.#list(one, bounds, fixed)].filter((value) => value !== undefined);
      default:
        return this.#objects(one, bounds, fixed);
    }
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

  #object(one: Conjunction, { required, minProperties }: Bounds, fixed: Fixed): object | undefined {
    const made = new Map<string, unknown>();
    for (const name of [...required, ...(fixed.keys() as Iterable<string>)]) {
      const value = fixed.has(name) ? fixed.get(name) : this.witness(one.member(name));
      if (value === NOT_FOUND) return undefined;
      made.set(name, value);
    }
    const known = one.nodes.flatMap(({ properties }) => [...properties.keys()]);
    const invented = Array.from({ length: Math.min(minProperties, MAX_FILLED) }, (_, at) => `member${at}`);
    for (const name of [...known, ...invented]) {
      if (made.size >= minProperties) break;
      if (made.has(name)) continue;
      const value = this.witness(one.member(name));
      if (value !== NOT_FOUND) made.set(name, value);
    }
    return Object.fromEntries(made);
  }

  #list(one: Conjunction, { minItems, unique }: Bounds, fixed: Fixed): unknown[] | undefined {
    const contained = one.nodes.flatMap(({ contains }) => contains ?? []);
    const fixedIndexes = [...(fixed.keys() as Iterable<number>)];
    const length = Math.max(minItems, ...fixedIndexes.map((index) => index + 1));
    if (length > MAX_FILLED) return undefined;
    const made: unknown[] = [];
    for (let wanted = contained[0]; made.length < length; wanted = contained[made.length]) {
      const plain = one.item(made.length);
      const item = wanted === undefined ? plain : plain.with({ nodes: [wanted] });
      const value = fixed.has(made.length) ? fixed.get(made.length) : this.another(item, unique ? made : []);
      if (value === NOT_FOUND) return undefined;
      made.push(value);
    }
    for (const wanted of contained) {
      if (made.some((item) => matches(wanted, item))) continue;
      const item = one.item(made.length).with({ nodes: [wanted] });
      const value = this.another(item, unique ? made : []);
      if (value === NOT_FOUND) return undefined;
      made.push(value);
    }
    return made;
  }

  /** A value that is not among the others. */
  another(one: Conjunction, others: readonly unknown[]): unknown {
    if (others.length === 0) return this.witness(one);
    const taken = new Set(others.map((value) => JSON.stringify(value)));
    for (const value of this.witnesses(one)) {
      if (!taken.has(JSON.stringify(value))) return value;
    }
    return NOT_FOUND;
  }
}

/** The conjunction with all alternatives decided, in every way. */
function* expansions(one: Conjunction): Generator<Conjunction> {
  let remaining = MAX_EXPANSIONS;
  function* decide(open: Conjunction): Generator<Conjunction> {
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

/** Plain texts, and those that only one of two similar formats takes. */
const TEXTS = [
  "text",
  "",
  "a",
  "7",
  "A b",
  "-",
  "ä",
  "Not-a-Format!",
  "a text of some length, made to be longer than most",
  "ä@example.com",
  "2026-01-31 12:00:00",
  "12:00:00",
  "bücher.example",
  "urn:x",
  "https://example.com/ä",
  "/ä",
];
const MAX_LENGTH = 5_000;
/** The first integers that each integer format refuses. */
const INTEGERS_PAST_FORMATS = [...INTEGER_FORMATS.values()]
  .flatMap(([min, max]) => [min, max])
  .map((limit) => limit + Math.sign(limit) * Math.max(1, Math.abs(limit) * Number.EPSILON));

/** Some texts within the bounds. */
function textsFor(bounds: Bounds, search: TextWitness): string[] {
  const { patterns, formats, minLength, maxLength } = bounds;
  const texts = [...formats.flatMap((format) => FORMAT_EXAMPLES.get(format) ?? []), ...TEXTS];
  if (formats.length === 0) texts.push(...FORMAT_EXAMPLES.values());
  if (patterns.length > 0) {
    const found = search.find({ matching: patterns, notMatching: [], minLength, maxLength });
    if (typeof found === "object") texts.unshift(found.text);
  }
  for (const length of [minLength, maxLength]) if (length <= MAX_LENGTH) texts.push("a".repeat(length));
  return [...new Set(texts)].filter(
    (text) =>
      lengthOf(text) >= minLength &&
      lengthOf(text) <= maxLength &&
      formats.every((format) => matchesFormat(text, format)),
  );
}

/** Some numbers of the type between the bounds: the bounds themselves, small ones, and multiples. */
function numbersFor(bounds: Bounds, type: number): number[] {
  const { lower, upper, factors } = bounds;
  const step = type === TYPE.integer ? 1 : 0.5;
  const near = [lower.value, upper.value].filter(Number.isFinite);
  const whole = near.flatMap((bound) => [Math.ceil(bound), Math.floor(bound)]);
  const offsets = [0, step, -step, step / 50];
  const around = [...near, ...whole].flatMap((bound) => offsets.map((offset) => bound + offset));
  const between = Number.isFinite(lower.value + upper.value) ? [(lower.value + upper.value) / 2] : [];
  const plain =
    type === TYPE.integer ? [1, 0, -1, 2, 3, 7, 1_000_003, -1_000_003] : [0.5, 1.5, -0.5, 0.1, 1_000_000.5];
  const multiples = factors.flatMap((factor) =>
    [0, 1, -1, Math.ceil(lower.value / factor), Math.floor(upper.value / factor)]
      .filter(Number.isFinite)
      .map((count) => count * factor),
  );
  const pastFormats = type === TYPE.integer ? INTEGERS_PAST_FORMATS : [];
  return [...new Set([...plain, ...around, ...between, ...multiples, ...pastFormats])].filter((value) =>
    containsNumber({ ...bounds, types: type }, value),
  );
}
