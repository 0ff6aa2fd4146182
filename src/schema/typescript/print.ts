import type { SchemaNode } from "../document.ts";
import type { TypeMember, TypeTree } from "./type-tree.ts";
import { commentOf, memberName } from "./write-text.ts";

/** Characters of a line, beyond which a union takes one for each of its parts. */
const LONGEST_LINE = 100;

type NameOf = (node: SchemaNode) => string;

/** @param indent of the line the type begins in */
export function printType(tree: TypeTree, nameOf: NameOf, indent = ""): string {
  return new Printer(nameOf).print(tree, indent);
}

class Printer {
  readonly #nameOf: NameOf;
  /** The least indent at which a type was found to be too long for a line; with more it is too. */
  readonly #tooLongFrom = new Map<TypeTree, number>();

  constructor(nameOf: NameOf) {
    this.#nameOf = nameOf;
  }

  print(tree: TypeTree, indent: string): string {
    const text = this.#text(tree, indent);
    const isTooLong = text.length + indent.length > LONGEST_LINE;
    if (isTooLong && !this.#isTooLong(tree, indent)) this.#tooLongFrom.set(tree, indent.length);
    return text;
  }

  #isTooLong(tree: TypeTree, indent: string): boolean {
    return (this.#tooLongFrom.get(tree) ?? Infinity) <= indent.length;
  }

  #text(tree: TypeTree, indent: string): string {
    switch (tree.kind) {
      case "word":
        return tree.text;
      case "reference":
        return this.#nameOf(tree.to);
      case "list":
        return `${this.#closed(tree.item, indent)}[]`;
      case "union":
        return this.#union(tree.parts, indent);
      case "intersection": {
        const parts = tree.parts.map((part) =>
          part.kind === "union" ? this.#closed(part, indent) : this.print(part, indent),
        );
        return [...new Set(parts)].join(" & ");
      }
      case "tuple":
        return this.#tuple(tree, indent);
      case "object":
        return this.#object(tree, indent);
      default:
        return "unknown";
    }
  }

  /** Fit to have something put behind it. */
  #closed(tree: TypeTree, indent: string): string {
    const text = this.print(tree, indent);
    return tree.kind === "union" || tree.kind === "intersection" ? `(${text})` : text;
  }

  #union(types: readonly TypeTree[], indent: string): string {
    const at = (depth: string): Set<string> => new Set(types.map((type) => this.print(type, depth)));
    // Trying each twice where unions are nested would double the work with each level.
    if (!types.some((type) => this.#isTooLong(type, indent)) || types.every(isObjectType)) {
      const short = at(indent);
      const line = [...short].join(" | ");
      if (line.length + indent.length <= LONGEST_LINE || short.size === 1) return line;
      if (types.every(isObjectType)) return line;
    }
    const deeper = `${indent}  `;
    const parts = at(deeper);
    if (parts.size === 1) return this.print(types[0]!, indent);
    return [...parts].map((part) => `\n${deeper}| ${part}`).join("");
  }

  #tuple({ items, rest }: TypeTree & { kind: "tuple" }, indent: string): string {
    const places = items.map(({ type, optional }) => {
      return optional ? `${this.#closed(type, indent)}?` : this.print(type, indent);
    });
    if (rest !== undefined) places.push(`...${this.#closed(rest, indent)}[]`);
    return `[${places.join(", ")}]`;
  }

  #object({ members, index }: TypeTree & { kind: "object" }, indent: string): string {
    const inner = `${indent}  `;
    if (members.length === 0) {
      return index === undefined ? "object" : `{ [key: string]: ${this.print(index, inner)} }`;
    }
    const lines = members.map((member) => this.#member(member, inner));
    if (index !== undefined) lines.push(`${inner}[key: string]: ${this.print(index, inner)};\n`);
    return `{\n${lines.join("")}${indent}}`;
  }

  #member({ name, type, optional, comment }: TypeMember, indent: string): string {
    const mark = optional ? "?" : "";
    return `${commentOf(comment, indent)}${indent}${memberName(name)}${mark}: ${this.print(type, indent)};\n`;
  }
}

function isObjectType({ kind }: TypeTree): boolean {
  return kind === "object";
}
