import { spend } from "../limits.ts";
import { memoize } from "../memoize.ts";
import type { SchemaNode } from "../node.ts";
import { ANY, TYPE, typesNamed } from "../validate/values.ts";
import { branchesNear } from "./unions.ts";

const STEPS_PER_CONJUNCTION = 6;

/** What is known of a value. */
export interface Literals {
  readonly nodes?: readonly SchemaNode[];
  /** Schemas the value does not conform to. */
  readonly negated?: readonly SchemaNode[];
  readonly types?: number;
  /** Members it has, and members it does not have. */
  readonly present?: readonly string[];
  readonly absent?: readonly string[];
}

/** An undecided `anyOf`, `oneOf`, `if` or dependency, of which a value takes one branch. */
export interface Alternatives {
  readonly key: string;
  readonly count: number;
  branch(index: number): Literals;
}

/**
 * The values that conform to each of some schemas and to none of others. `allOf` and `$ref` are followed; `anyOf`, `oneOf`,
 * `if` and `dependencies` are alternatives until a branch is chosen.
 */
export class Conjunction {
  readonly nodes: readonly SchemaNode[];
  readonly negated: readonly SchemaNode[];
  readonly types: number;
  readonly present: readonly string[];
  readonly absent: readonly string[];
  readonly alternatives: readonly Alternatives[];
  /** Conjunctions that have the same values for the same reasons have one key. */
  readonly key: string;
  readonly #decided: ReadonlySet<string>;
  readonly #expanded = new Map<Alternatives, Conjunction[]>();

  constructor(literals: Literals, decided: ReadonlySet<string> = new Set()) {
    const normal = new Normalizer(literals);
    spend(STEPS_PER_CONJUNCTION + normal.nodes.length + normal.negated.length + normal.alternatives.length);
    this.nodes = normal.nodes;
    this.negated = normal.negated;
    this.types = normal.types;
    this.present = [...normal.present];
    this.absent = [...normal.absent];
    this.#decided = decided;
    this.alternatives = normal.alternatives.filter(({ key }) => !decided.has(key));
    this.key = `${this.types};${idsOf(this.nodes)};${idsOf(this.negated)};${namesOf(this.present)};${namesOf(this.absent)};${this.alternatives.map(({ key }) => key).join()}`;
  }

  /** Its values of which more is known. */
  with(
    { nodes = [], negated = [], types = ANY, present = [], absent = [] }: Literals,
    decides?: Alternatives,
  ): Conjunction {
    return new Conjunction(
      {
        nodes: [...this.nodes, ...nodes],
        negated: [...this.negated, ...negated],
        types: this.types & types,
        present: [...this.present, ...present],
        absent: [...this.absent, ...absent],
      },
      decides === undefined ? this.#decided : new Set([...this.#decided, decides.key]),
    );
  }

  /** A conjunction for each branch, made when it is needed: there may be hundreds. */
  *expand(choice: Alternatives): Generator<Conjunction, void, void> {
    let made = this.#expanded.get(choice);
    if (made === undefined) this.#expanded.set(choice, (made = []));
    for (let index = 0; index < choice.count; index++) {
      yield (made[index] ??= this.with(choice.branch(index), choice));
    }
  }

  member(name: string): Conjunction {
    if (this.absent.includes(name)) return new Conjunction({ types: 0 });
    spend(this.nodes.length >> 3);
    return new Conjunction({ nodes: this.nodes.flatMap((node) => node.memberNodes(name)) });
  }

  item(index: number): Conjunction {
    return new Conjunction({ nodes: this.nodes.flatMap((node) => node.itemNode(index) ?? []) });
  }

  /** The names of members. */
  name(): Conjunction {
    const nodes = this.nodes.flatMap(({ propertyNames }) => propertyNames ?? []);
    return new Conjunction({ nodes, types: TYPE.string });
  }
}

/** Takes schemas apart into what always holds, and alternatives. */
class Normalizer {
  readonly nodes: SchemaNode[] = [];
  readonly negated: SchemaNode[] = [];
  readonly present: Set<string>;
  readonly absent: Set<string>;
  readonly alternatives: Alternatives[] = [];
  types: number;
  readonly #seen = new Set<SchemaNode>();

  constructor({ nodes = [], negated = [], types = ANY, present = [], absent = [] }: Literals) {
    this.types = types;
    this.present = new Set(present);
    this.absent = new Set(absent);
    for (const node of nodes) this.#take(node);
    for (const node of negated) this.#refuse(node);
  }

  #take(node: SchemaNode): void {
    spend(1);
    if (this.#seen.has(node)) return;
    this.#seen.add(node);
    if (node.allowsNone) this.types = 0;
    if (node.target !== undefined) {
      this.#take(node.target);
      return;
    }
    if (node.allowsAll || node.allowsNone) return;
    this.nodes.push(node);
    this.types &= typesNamed(node.value("type"));
    for (const inner of node.allOf) this.#take(inner);
    if (node.not !== undefined) this.#refuse(node.not);
    if (node.anyOf.length === 1) this.#take(node.anyOf[0]!);
    this.alternatives.push(...alternativesOf(node));
  }

  #refuse(node: SchemaNode): void {
    spend(1);
    const only = node.keywords.length === 1 ? node.keywords[0] : undefined;
    if (node.allowsAll) this.types = 0;
    else if (node.allowsNone) return;
    else if (node.target !== undefined) this.#refuse(node.target);
    else if (only === "type") this.types &= ANY & ~typesNamed(node.value("type"));
    else if (only === "not") this.#take(node.not!);
    else if (only === "anyOf") for (const inner of node.anyOf) this.#refuse(inner);
    else if (only === "required" && node.required.length === 1) {
      // `required` allows everything that is no object.
      this.types &= TYPE.object;
      this.absent.add(node.required[0]!);
      this.negated.push(node);
    } else this.negated.push(node);
  }
}

const alternativesOf = memoize((node: SchemaNode): readonly Alternatives[] => [...findAlternatives(node)]);

function* findAlternatives(node: SchemaNode): Generator<Alternatives> {
  const { id, anyOf, oneOf } = node;
  if (anyOf.length > 1) {
    yield { key: `${id}any`, count: anyOf.length, branch: (index) => ({ nodes: [anyOf[index]!] }) };
  }
  if (oneOf.length > 0) {
    const branch = (index: number): Literals => {
      const inner = oneOf[index]!;
      return { nodes: [inner], negated: branchesNear(oneOf, inner).filter((other) => other !== inner) };
    };
    yield { key: `${id}one`, count: oneOf.length, branch };
  }
  if (node.keywords.includes("if")) {
    const [condition, then, otherwise] = [node.if!, node.then, node.else];
    const branches = [
      { nodes: then === undefined ? [condition] : [condition, then] },
      { nodes: otherwise === undefined ? [] : [otherwise], negated: [condition] },
    ];
    yield { key: `${id}if`, count: 2, branch: (index) => branches[index]! };
  }
  // `absent` holds for every value that is no object.
  const depends = (name: string, there: Literals): Alternatives => ({
    key: `${id}dep${JSON.stringify(name)}${there.nodes?.length ?? ""}`,
    count: 2,
    branch: (index) => (index === 0 ? { absent: [name] } : there),
  });
  for (const [name, needed] of node.dependentNames) yield depends(name, { present: [name, ...needed] });
  for (const [name, inner] of node.dependentSchemas) yield depends(name, { present: [name], nodes: [inner] });
}

function idsOf(list: readonly SchemaNode[]): string {
  if (list.length < 2) return list.length === 0 ? "" : String(list[0]!.id);
  return [...new Set(list.map(({ id }) => id))].toSorted((a, b) => a - b).join();
}

function namesOf(list: readonly string[]): string {
  return list.length === 0 ? "" : JSON.stringify(list.toSorted());
}
