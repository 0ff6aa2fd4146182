import { spend } from "../limits.ts";
import { ANY, TYPE, typesNamed } from "../validate/values.ts";
import type { SchemaNode } from "../node.ts";
import { branchesOf } from "./unions.ts";

const STEPS_PER_CASE = 6;

const knownChoices = new WeakMap<SchemaNode, readonly Choice[]>();

/** What a case says beside its schemas. */
export interface Extra {
  /** Schemas the value conforms to. */
  readonly all?: readonly SchemaNode[];
  /** Schemas the value does not conform to. */
  readonly none?: readonly SchemaNode[];
  /** Types the value may have. */
  readonly types?: number;
  /** Members it has, and members it does not have. */
  readonly present?: readonly string[];
  readonly absent?: readonly string[];
}

/** A place where a value goes one of several ways. */
export interface Choice {
  readonly key: string;
  readonly count: number;
  /** What is said by the way of that number. */
  branch(index: number): Extra;
}

/**
 * A set of values: those that conform to each of some schemas and to none of others. `allOf` and `$ref` are followed;
 * what leaves a choice (`anyOf`, `oneOf`, `if`, `dependencies`) stands among the choices until one of its ways is taken.
 */
export class Case {
  readonly shapes: readonly SchemaNode[];
  readonly none: readonly SchemaNode[];
  readonly types: number;
  readonly present: readonly string[];
  readonly absent: readonly string[];
  readonly choices: readonly Choice[];
  /** The same for cases that hold the same values for the same reasons. */
  readonly key: string;
  readonly #decided: ReadonlySet<string>;
  readonly #ways = new Map<Choice, Case[]>();

  constructor(extra: Extra, decided: ReadonlySet<string> = new Set()) {
    const gathered = new Gathering(extra);
    spend(STEPS_PER_CASE + gathered.shapes.length + gathered.none.length + gathered.choices.length);
    this.shapes = gathered.shapes;
    this.none = gathered.none;
    this.types = gathered.types;
    this.present = [...gathered.present];
    this.absent = [...gathered.absent];
    this.#decided = decided;
    this.choices = gathered.choices.filter(({ key }) => !decided.has(key));
    this.key = `${this.types};${idsOf(this.shapes)};${idsOf(this.none)};${namesOf(this.present)};${namesOf(this.absent)};${this.choices.map(({ key }) => key).join()}`;
  }

  /** The same with more said about it. */
  with({ all = [], none = [], types = ANY, present = [], absent = [] }: Extra, decides?: Choice): Case {
    return new Case(
      {
        all: [...this.shapes, ...all],
        none: [...this.none, ...none],
        types: this.types & types,
        present: [...this.present, ...present],
        absent: [...this.absent, ...absent],
      },
      decides === undefined ? this.#decided : new Set([...this.#decided, decides.key]),
    );
  }

  /** The ways out of a choice, each made when it is asked for: there may be hundreds, each as much work as the case. */
  *ways(choice: Choice): Generator<Case, void, void> {
    let made = this.#ways.get(choice);
    if (made === undefined) this.#ways.set(choice, (made = []));
    for (let index = 0; index < choice.count; index++) {
      yield (made[index] ??= this.with(choice.branch(index), choice));
    }
  }

  /** What a member of that name is. */
  member(name: string): Case {
    if (this.absent.includes(name)) return NOTHING;
    spend(this.shapes.length >> 3);
    return new Case({ all: this.shapes.flatMap((shape) => shape.memberNodes(name)) });
  }

  /** What an item at that place is. */
  item(index: number): Case {
    return new Case({ all: this.shapes.flatMap((shape) => shape.itemNode(index) ?? []) });
  }

  /** What a member's name is. */
  name(): Case {
    const shapes = this.shapes.flatMap(({ propertyNames }) => propertyNames ?? []);
    return new Case({ all: shapes, types: TYPE.string });
  }
}

/** Takes schemas apart into what holds in any case, and choices. */
class Gathering {
  readonly shapes: SchemaNode[] = [];
  readonly none: SchemaNode[] = [];
  readonly present: Set<string>;
  readonly absent: Set<string>;
  readonly choices: Choice[] = [];
  types: number;
  readonly #seen = new Set<SchemaNode>();

  constructor({ all = [], none = [], types = ANY, present = [], absent = [] }: Extra) {
    this.types = types;
    this.present = new Set(present);
    this.absent = new Set(absent);
    for (const shape of all) this.#take(shape);
    for (const shape of none) this.#refuse(shape);
  }

  #take(shape: SchemaNode): void {
    spend(1);
    if (this.#seen.has(shape)) return;
    this.#seen.add(shape);
    if (shape.allowsNone) this.types = 0;
    if (shape.target !== undefined) {
      this.#take(shape.target);
      return;
    }
    if (shape.allowsAll || shape.allowsNone) return;
    this.shapes.push(shape);
    this.types &= typesNamed(shape.value("type"));
    for (const inner of shape.allOf) this.#take(inner);
    if (shape.not !== undefined) this.#refuse(shape.not);
    if (shape.anyOf.length === 1) this.#take(shape.anyOf[0]!);
    this.choices.push(...choicesOf(shape));
  }

  #refuse(shape: SchemaNode): void {
    spend(1);
    const said = shape.keywords.length === 1 ? shape.keywords[0] : undefined;
    if (shape.allowsAll) this.types = 0;
    else if (shape.allowsNone) return;
    else if (shape.target !== undefined) this.#refuse(shape.target);
    else if (said === "type") this.types &= ANY & ~typesNamed(shape.value("type"));
    else if (said === "not") this.#take(shape.not!);
    else if (said === "anyOf") for (const inner of shape.anyOf) this.#refuse(inner);
    else if (said === "required" && shape.required.length === 1) {
      // Whatever is not an object conforms to `required`.
      this.types &= TYPE.object;
      this.absent.add(shape.required[0]!);
      this.none.push(shape);
    } else this.none.push(shape);
  }
}

/** No value at all. */
const NOTHING = new Case({ types: 0 });

function choicesOf(shape: SchemaNode): readonly Choice[] {
  let choices = knownChoices.get(shape);
  if (choices === undefined) knownChoices.set(shape, (choices = [...findChoices(shape)]));
  return choices;
}

function* findChoices(shape: SchemaNode): Generator<Choice> {
  const { id, anyOf, oneOf } = shape;
  if (anyOf.length > 1) {
    yield { key: `${id}any`, count: anyOf.length, branch: (index) => ({ all: [anyOf[index]!] }) };
  }
  if (oneOf.length > 0) {
    const branches = branchesOf(shape, "oneOf");
    const branch = (index: number): Extra => {
      const inner = oneOf[index]!;
      return { all: [inner], none: branches.near(inner).filter((other) => other !== inner) };
    };
    yield { key: `${id}one`, count: oneOf.length, branch };
  }
  if (shape.keywords.includes("if")) {
    const [condition, then, otherwise] = [shape.if!, shape.then, shape.else];
    const branches = [
      { all: then === undefined ? [condition] : [condition, then] },
      { all: otherwise === undefined ? [] : [otherwise], none: [condition] },
    ];
    yield { key: `${id}if`, count: 2, branch: (index) => branches[index]! };
  }
  // Values other than objects have no members, so `absent` says nothing about them.
  const depends = (name: string, there: Extra): Choice => ({
    key: `${id}dep${JSON.stringify(name)}${there.all?.length ?? ""}`,
    count: 2,
    branch: (index) => (index === 0 ? { absent: [name] } : there),
  });
  for (const [name, needed] of shape.dependentNames) yield depends(name, { present: [name, ...needed] });
  for (const [name, inner] of shape.dependentSchemas) yield depends(name, { present: [name], all: [inner] });
}

function idsOf(list: readonly SchemaNode[]): string {
  if (list.length < 2) return list.length === 0 ? "" : String(list[0]!.id);
  return [...new Set(list.map(({ id }) => id))].toSorted((a, b) => a - b).join();
}

function namesOf(list: readonly string[]): string {
  return list.length === 0 ? "" : JSON.stringify(list.toSorted());
}
