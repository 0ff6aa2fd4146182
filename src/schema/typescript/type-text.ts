import { commentOf, memberName } from "./literals.ts";

/** A type as TypeScript writes it. Its first line begins at the margin. */
export interface TypeText {
  readonly text: string;
  /** What its parts are joined to, where there are several. */
  readonly kind: "single" | "union" | "intersection";
  readonly parts: readonly TypeText[];
}

export interface TypeMember {
  readonly name: string;
  readonly type: TypeText;
  readonly optional: boolean;
  /** The lines of its comment. */
  readonly comment: readonly string[];
}

export interface TuplePlace {
  readonly type: TypeText;
  readonly optional: boolean;
}

/** A keyword, a literal or a name. */
export function wordOf(text: string): TypeText {
  return single(text);
}

export const UNKNOWN = wordOf("unknown");
export const NEVER = wordOf("never");
/** An object of which nothing more is known. */
export const ANY_OBJECT = single("{ [key: string]: unknown }");

/** A union of more parts takes a line for each. */
const MAX_IN_LINE = 3;

export function unionOf(types: readonly TypeText[]): TypeText {
  const parts = distinct(types.flatMap((type) => (type.kind === "union" ? type.parts : type)));
  if (parts.some(isUnknown)) return UNKNOWN;
  const possible = parts.filter((part) => !isNever(part));
  if (possible.length <= 1) return possible[0] ?? NEVER;
  const text =
    possible.length > MAX_IN_LINE
      ? possible.map((part) => `\n  | ${indented(part.text)}`).join("")
      : possible.map((part) => part.text).join(" | ");
  return { text, kind: "union", parts: possible };
}

export function intersectionOf(types: readonly TypeText[]): TypeText {
  const parts = distinct(types.flatMap((type) => (type.kind === "intersection" ? type.parts : type)));
  if (parts.some(isNever)) return NEVER;
  const known = parts.filter((part) => !isUnknown(part));
  // Beside a more specific type it would only allow any name to be read.
  const specific = known.filter((part) => part.text !== ANY_OBJECT.text);
  const all = specific.length > 0 ? specific : known;
  if (all.length <= 1) return all[0] ?? UNKNOWN;
  const text = all.map((part) => (part.kind === "union" ? `(${part.text})` : part.text)).join(" & ");
  return { text, kind: "intersection", parts: all };
}

export function listOf(item: TypeText): TypeText {
  return single(`${closed(item)}[]`);
}

/** @param rest the type of all items after the places; `undefined` where there are none */
export function tupleOf(places: readonly TuplePlace[], rest: TypeText | undefined): TypeText {
  const texts = places.map(({ type, optional }) => (optional ? `${closed(type)}?` : type.text));
  if (rest !== undefined) texts.push(`...${closed(rest)}[]`);
  return single(`[${texts.join(", ")}]`);
}

/** @param index the type of members of other names; `undefined` where nothing is known of them */
export function objectOf(members: readonly TypeMember[], index: TypeText | undefined): TypeText {
  const others = index === undefined ? undefined : `[key: string]: ${index.text}`;
  if (members.length === 0) return single(others === undefined ? "object" : `{ ${indented(others)} }`);
  const lines = members.map(
    ({ name, type, optional, comment }) =>
      `${commentOf(comment)}${memberName(name)}${optional ? "?" : ""}: ${type.text};`,
  );
  if (others !== undefined) lines.push(`${others};`);
  return single(`{\n  ${indented(lines.join("\n"))}\n}`);
}

export function isUnknown({ text }: TypeText): boolean {
  return text === UNKNOWN.text;
}

export function isNever({ text }: TypeText): boolean {
  return text === NEVER.text;
}

function single(text: string): TypeText {
  return { text, kind: "single", parts: [] };
}

function distinct(types: readonly TypeText[]): readonly TypeText[] {
  return [...new Map(types.map((type) => [type.text, type])).values()];
}

/** Fit to have something put behind it. */
function closed({ text, kind }: TypeText): string {
  return kind === "single" ? text : `(${text})`;
}

function indented(text: string): string {
  return text.replaceAll("\n", "\n  ");
}
