import { readSchema } from "../document.ts";
import type { SchemaNode } from "../document.ts";
import { typeOfPayload, typeOfSchema } from "./from-schema.ts";
import { freeName, namesFor, typeName } from "./names.ts";
import type { NamedSchema } from "./names.ts";
import { aboutSchema } from "./object-type.ts";
import { printType } from "./print.ts";
import { typesIn } from "./type-tree.ts";
import type { TypeTree } from "./type-tree.ts";
import { bounded } from "./width.ts";
import { commentOf } from "./write-text.ts";

/** A payload's schema to declare a type for. */
export interface DeclaredSchema {
  /** What the type is named after: `user.created` → `UserCreated`. */
  readonly name: string;
  readonly schemata: unknown;
  /** Lines of the type's comment, behind what the schema says about itself. */
  readonly about: readonly string[];
}

export interface Declarations {
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
): Declarations {
  const taken = new Set(reserved);
  const names = new Map<SchemaNode, string>();
  const types = new Map<SchemaNode, TypeTree>();
  const named: NamedSchema[] = [];
  const roots = schemas.map(({ name, schemata }) => {
    const { root } = readSchema(schemata);
    names.set(root, freeName(typeName(name), taken));
    return root;
  });
  for (const root of roots) {
    types.set(root, typeOfPayload(root));
    const waiting = [...referencesIn(types.get(root)!)];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (types.has(node)) continue;
      types.set(node, typeOfSchema(node));
      named.push({ node, owner: names.get(root)! });
      waiting.push(...referencesIn(types.get(node)!));
    }
  }
  for (const [node, name] of namesFor(named, taken)) names.set(node, name);
  const printed = bounded(types);
  const nameOf = (node: SchemaNode): string => names.get(node)!;
  const declare = (node: SchemaNode, about: readonly string[]): string => {
    const comment = commentOf([...aboutSchema(node.schema), ...about], "");
    const type = printType(printed.get(node)!, nameOf);
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

function* referencesIn(tree: TypeTree): Generator<SchemaNode> {
  if (tree.kind === "reference") yield tree.to;
  for (const inner of typesIn(tree)) yield* referencesIn(inner);
}
