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

  constructor(nameOf: NameOf) {
    this.#nameOf = nameOf;
  }

  print(tree: TypeTree, indent: string): string {
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
    const deeper = `${indent}  `;
    const short = new Set(types.map((type) => this.print(type, indent)));
    const line = [...short].join(" | ");
    if (line.length + indent.length <= LONGEST_LINE || short.size === 1) return line;
    if (types.every(({ kind }) => kind === "object")) return line;
    const parts = new Set(types.map((type) => this.print(type, deeper)));
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
