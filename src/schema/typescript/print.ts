import type { SchemaNode } from "../node.ts";
import type { TypeMember, TypeTree } from "./type-tree.ts";

/** A union of more parts takes a line for each. */
const MAX_IN_LINE = 3;

type NameOf = (node: SchemaNode) => string;

/** @param indent of the line the type begins in */
export function printType(tree: TypeTree, nameOf: NameOf, indent = ""): string {
  switch (tree.kind) {
    case "word":
      return tree.text;
    case "reference":
      return nameOf(tree.to);
    case "list":
      return `${closed(tree.item, nameOf, indent)}[]`;
    case "union":
      return printUnion(tree.parts, nameOf, indent);
    case "intersection": {
      const parts = tree.parts.map((part) =>
        part.kind === "union" ? closed(part, nameOf, indent) : printType(part, nameOf, indent),
      );
      return [...new Set(parts)].join(" & ");
    }
    case "tuple":
      return printTuple(tree, nameOf, indent);
    case "object":
      return printObject(tree, nameOf, indent);
    default:
      return "unknown";
  }
}

/** Fit to have something put behind it. */
function closed(tree: TypeTree, nameOf: NameOf, indent: string): string {
  const text = printType(tree, nameOf, indent);
  return tree.kind === "union" || tree.kind === "intersection" ? `(${text})` : text;
}

function printUnion(types: readonly TypeTree[], nameOf: NameOf, indent: string): string {
  const isLong = types.length > MAX_IN_LINE;
  const inner = isLong ? `${indent}  ` : indent;
  const parts = [...new Set(types.map((type) => printType(type, nameOf, inner)))];
  return isLong ? parts.map((part) => `\n${inner}| ${part}`).join("") : parts.join(" | ");
}

function printTuple({ items, rest }: TypeTree & { kind: "tuple" }, nameOf: NameOf, indent: string): string {
  const places = items.map(({ type, optional }) =>
    optional ? `${closed(type, nameOf, indent)}?` : printType(type, nameOf, indent),
  );
  if (rest !== undefined) places.push(`...${closed(rest, nameOf, indent)}[]`);
  return `[${places.join(", ")}]`;
}

function printObject(
  { members, index }: TypeTree & { kind: "object" },
  nameOf: NameOf,
  indent: string,
): string {
  const inner = `${indent}  `;
  const others = index === undefined ? undefined : `[key: string]: ${printType(index, nameOf, inner)}`;
  if (members.length === 0) return others === undefined ? "object" : `{ ${others} }`;
  const lines = members.map((member) => printMember(member, nameOf, inner));
  if (others !== undefined) lines.push(`${inner}${others};\n`);
  return `{\n${lines.join("")}${indent}}`;
}

function printMember({ name, type, optional, comment }: TypeMember, nameOf: NameOf, indent: string): string {
  const mark = optional ? "?" : "";
  return `${commentOf(comment, indent)}${indent}${memberName(name)}${mark}: ${printType(type, nameOf, indent)};\n`;
}

// oxlint-disable no-control-regex -- finding them is what this file is for
/** Characters that end a line, act on a terminal or show text in another order than it has. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const LINE_END = /\r\n|[\n\r\u2028\u2029]/;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

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
  const shown = lines.flatMap((line) => line.split(LINE_END)).map((line) => harmless(line).trimEnd());
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
