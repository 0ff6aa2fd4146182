import { createHash } from "node:crypto";
import { memoize } from "../memoize.ts";
import { pointerSteps } from "../../json/field-path.ts";
import type { SchemaNode } from "../node.ts";
import { readSchema } from "../read.ts";
import { commentOf } from "./literals.ts";
import type { TypeText } from "./type-text.ts";
import { aboutSchema, referencesIn, typeOfPayload, typeOfSchema, withNames } from "./types.ts";

interface DeclaredSchema {
  /** What the type is named after: `user.created` → `UserCreated`. */
  readonly name: string;
  readonly schemata: unknown;
  /** Lines of the type's comment, after the schema's own title and description. */
  readonly about: readonly string[];
}

interface TypeDeclarations {
  /** TypeScript, each type exported; the schemas' own in the order given, then those they share. */
  readonly source: string;
  /** Names of the types, in the order of the schemas. */
  readonly names: readonly string[];
}

/**
 * Declares a type for each schema, and one for each schema that a `$ref` leads to. The same schemas give the same text.
 * @param reserved names that are not to be used
 * @throws `invalid` with the place, for a schema that `checkSchema` would not accept
 */
export function declarationsFor(
  schemas: readonly DeclaredSchema[],
  reserved: readonly string[],
): TypeDeclarations {
  const taken = new Set(reserved);
  const names = new Map<SchemaNode, string>();
  const types = new Map<SchemaNode, TypeText>();
  const named: NamedSchema[] = [];
  const byId = new Map<number, SchemaNode>();
  const roots = schemas.map(({ name, schemata }) => {
    const { root, nodes } = readSchema(schemata);
    for (const node of nodes) byId.set(node.id, node);
    names.set(root, freeName(typeName(name), taken));
    return root;
  });
  for (const root of roots) {
    types.set(root, typeOfPayload(root));
    const waiting = [...referencesIn(types.get(root)!)];
    for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
      const node = byId.get(id)!;
      if (types.has(node)) continue;
      types.set(node, typeOfSchema(node));
      named.push({ node, owner: names.get(root)! });
      waiting.push(...referencesIn(types.get(node)!));
    }
  }
  for (const [node, name] of namesFor(named, taken)) names.set(node, name);
  const nameOf = (node: SchemaNode): string => names.get(node)!;
  const declare = (node: SchemaNode, about: readonly string[]): string => {
    const comment = commentOf([...aboutSchema(node.schema), ...about]);
    const type = withNames(types.get(node)!, (id) => nameOf(byId.get(id)!));
    return `${comment}export type ${nameOf(node)} =${type.startsWith("\n") ? "" : " "}${type};\n`;
  };
  const own = roots.map((root, index) => declare(root, schemas[index]!.about));
  const shared = new Map(named.map(({ node }) => [nameOf(node), node]));
  const inOrder = [...shared].toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    source: [...own, ...inOrder.map(([, node]) => declare(node, []))].join("\n"),
    names: roots.map(nameOf),
  };
}

/** A schema that gets a name of its own, and the named type whose document it is in. */
interface NamedSchema {
  readonly node: SchemaNode;
  readonly owner: string;
}

/** `user.created` → `UserCreated`, `2fa-enabled` → `_2faEnabled`. */
function typeName(words: string): string {
  const name = words
    .split(/[^\p{ID_Continue}$]+|[_\u200c\u200d]+/u)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join("");
  return /^[\p{ID_Start}$]/u.test(name) ? name : `_${name}`;
}

function freeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name}${number}`;
  taken.add(free);
  return free;
}

/** Names by `definitions`. Those that say the same share it; of others, all but the first have the owner's name before it. */
function namesFor(schemas: readonly NamedSchema[], taken: Set<string>): Map<SchemaNode, string> {
  const shared = new Map<string, string>();
  const names = new Map<SchemaNode, string>();
  for (const named of schemas) {
    const base = baseName(named);
    const content = `${base} ${contentOf(named.node)}`;
    const name = shared.get(content) ?? freeName(taken.has(base) ? named.owner + base : base, taken);
    shared.set(content, name);
    names.set(named.node, name);
  }
  return names;
}

function baseName({ node, owner }: NamedSchema): string {
  const steps = pointerSteps(node.pointer);
  const last = typeName(steps.at(-1) ?? "");
  const isDefinition = steps.length === 2 && ["definitions", "$defs"].includes(steps[0]!);
  return isDefinition ? last : `${owner}${typeName(steps.at(-2) ?? "")}${last}`;
}

const digestOf = memoize((node: SchemaNode) =>
  createHash("sha256").update(JSON.stringify(node.schema)).digest("base64"),
);

/** Answers one text for two schemas when they and all they refer to are written the same, in the same places. */
function contentOf(root: SchemaNode): string {
  const reached = new Set([root]);
  const visited = new Set<SchemaNode>([root]);
  for (const node of visited) {
    if (node.target !== undefined) {
      reached.add(node.target);
      visited.add(node.target);
    }
    for (const { node: child } of node.subschemas) visited.add(child);
  }
  const parts = [...reached].map((node) => `${node.pointer} ${digestOf(node)}`);
  return parts.toSorted().join("\n");
}
