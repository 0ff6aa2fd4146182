import type { SchemaNode } from "../node.ts";
import type { TypeMember, TypeTree } from "./type-tree.ts";

/** Characters of a line, beyond which a union takes one for each of its parts. */
const MAX_LINE = 100;

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
    const isTooLong = text.length + indent.length > MAX_LINE;
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
      if (line.length + indent.length <= MAX_LINE || short.size === 1) return line;
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

// oxlint-disable no-control-regex -- finding them is what this file is for
/** Characters that end a line, act on a terminal or show text in another order than it has. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const MAX_COMMENT_LINE = 110;

export function stringLiteral(text: string): string {
  return JSON.stringify(text).replace(UNSAFE, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** A value of JSON as the literal type that only it has; `undefined` for a number that no literal stands for. */
export function scalarLiteral(value: string | number | boolean | null): string | undefined {
  if (typeof value === "string") return stringLiteral(value);
  if (typeof value === "number") return Number.isFinite(value) ? String(value + 0) : undefined;
  return String(value);
}

function memberName(name: string): string {
  return IDENTIFIER.test(name) ? name : stringLiteral(name);
}

/** A documentation comment with its line break, or nothing for no text. */
export function commentOf(lines: readonly string[], indent: string): string {
  const shown = lines
    .flatMap((line) => line.split(LINE_END))
    .flatMap((line) => wrapped(harmless(line).trimEnd(), MAX_COMMENT_LINE - indent.length));
  while (shown.at(-1) === "") shown.pop();
  if (shown.length === 0) return "";
  if (shown.length === 1) return `${indent}/** ${shown[0]} */\n`;
  const body = shown.map((line) => `${indent} *${line === "" ? "" : ` ${line}`}\n`).join("");
  return `${indent}/**\n${body}${indent} */\n`;
}

/** Text from a schema, safe in a comment: it neither ends it nor instructs the compiler or a tool. */
function harmless(line: string): string {
  return line
    .replace(UNSAFE, " ")
    .replaceAll("*/", "*\\/")
    .replaceAll(/(^|[^\w\\`])@(?=\w)/g, "$1\\@");
}

function wrapped(line: string, width: number): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const space = rest.lastIndexOf(" ", width);
    if (space <= 0) break;
    lines.push(rest.slice(0, space));
    rest = rest.slice(space + 1);
  }
  return [...lines, rest];
}
