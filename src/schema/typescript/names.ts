import { createHash } from "node:crypto";
import type { SchemaNode } from "../document.ts";
import { pointerSteps } from "../field-path.ts";

/** A schema that gets a name of its own, and the named type whose document it is in. */
export interface NamedSchema {
  readonly node: SchemaNode;
  readonly owner: string;
}

/** `user.created` → `UserCreated`, `2fa-enabled` → `_2faEnabled`. */
export function typeName(words: string): string {
  const name = words
    .split(/[^\p{ID_Continue}$]+|[_\u200c\u200d]+/u)
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join("");
  return /^[\p{ID_Start}$]/u.test(name) ? name : `_${name}`;
}

/** The name if it is free, else with the first number that makes it so. */
export function freeName(name: string, taken: Set<string>): string {
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name}${number}`;
  taken.add(free);
  return free;
}

/**
 * Names for schemas that others refer to, after their own in `definitions`. Where several documents define the very same
 * under one name, they share one; where they differ, each has its owner's name before it.
 */
export function namesFor(schemas: readonly NamedSchema[], taken: Set<string>): Map<SchemaNode, string> {
  const groups = new Map<string, Map<string, NamedSchema[]>>();
  for (const named of schemas) {
    const base = baseName(named);
    const contents = groups.get(base) ?? new Map<string, NamedSchema[]>();
    groups.set(base, contents);
    const content = contentOf(named.node);
    contents.set(content, [...(contents.get(content) ?? []), named]);
  }
  const names = new Map<SchemaNode, string>();
  for (const [base, contents] of [...groups].toSorted(byName)) {
    const shared = contents.size === 1 && !taken.has(base);
    for (const alike of contents.values()) {
      const name = freeName(shared ? base : alike[0]!.owner + base, taken);
      for (const { node } of alike) names.set(node, name);
    }
  }
  return names;
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

function baseName({ node, owner }: NamedSchema): string {
  const steps = pointerSteps(node.pointer);
  const last = typeName(steps.at(-1) ?? "");
  const isDefinition = steps.length === 2 && ["definitions", "$defs"].includes(steps[0]!);
  return isDefinition ? last : `${owner}${typeName(steps.at(-2) ?? "")}${last}`;
}

const texts = new WeakMap<SchemaNode, string>();

/** The same for two schemas exactly when they and all they refer to are written the same, in the same places. */
function contentOf(root: SchemaNode): string {
  const found = new Set([root]);
  const visited = new Set<SchemaNode>([root]);
  for (const node of visited) {
    if (node.target !== undefined) {
      found.add(node.target);
      visited.add(node.target);
    }
    for (const { node: child } of node.subschemas) visited.add(child);
  }
  const parts = [...found].map((node) => {
    let text = texts.get(node);
    if (text === undefined) {
      text = createHash("sha256").update(JSON.stringify(node.schema)).digest("base64");
      texts.set(node, text);
    }
    return `${node.pointer} ${text}`;
  });
  return parts.toSorted().join("\n");
}
