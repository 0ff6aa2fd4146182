import type { Field, Fields } from "../../model/field.ts";
import type { Column } from "../io/table.ts";

/** How a member of a record is shown where its description does not say it. */
interface ShownMember<T> extends Pick<Column<T>, "color" | "block" | "lines"> {
  /** Where it answers `undefined`, a single record has no line for it. */
  readonly show?: Column<T>["value"];
}

/** By member. A function makes the text of the member alone. */
export type ShownMembers<T> = {
  readonly [K in keyof T & string]?: ShownMember<T> | Column<T>["value"];
};

/** How wide a member's column is in a listing, and what is shown there instead. */
export type ListColumns<T> = {
  readonly [K in keyof T & string]?: Partial<Omit<Column<T>, "block" | "lines">>;
};

/** How records of one kind are listed. */
export interface ListView<T> {
  readonly noun: string;
  readonly plural: string;
  /** The name of the command that lists them, and of the part of the port; by default it is `plural`. */
  readonly command?: string;
  readonly list: readonly Column<T>[];
  /** What a listing says that is empty and leaves nothing out. */
  readonly none: () => string;
}

/** What all commands of one noun share. */
export interface RecordView<T> extends ListView<T> {
  readonly noun: "action" | "event" | "subscription" | "delivery" | "replay" | "token";
  readonly plural: "actions" | "events" | "subscriptions" | "deliveries" | "replays" | "tokens";
  /** The lines of one record. */
  readonly record: readonly Column<T>[];
}

/**
 * The lines of one record: its members that have a title.
 * @param first the members that come before all others
 */
export function linesOf<T>(
  fields: Fields,
  shown: ShownMembers<T>,
  first: readonly (keyof T & string)[] = [],
): Column<T>[] {
  const names = new Set([...first, ...Object.keys(fields)]);
  return [...names].flatMap((name) => {
    const field = fields[name];
    return field?.title === undefined ? [] : [columnOf(name, field, shown)];
  });
}

/** The members of what only the command line shows, by their titles. */
export function titled(titles: Readonly<Record<string, string>>): Fields {
  return Object.fromEntries(Object.entries(titles).map(([name, title]) => [name, { title }]));
}

/** The columns of a listing. Their titles are those of the lines, in capitals. */
export function listOf<T>(fields: Fields, shown: ShownMembers<T>, columns: ListColumns<T>): Column<T>[] {
  return Object.entries<Partial<Column<T>> | undefined>(columns).map(([name, column]) => {
    const { title, value, color } = columnOf(name, fields[name]!, shown);
    return Object.assign({ title: title.toUpperCase(), value }, color && { color }, column);
  });
}

function columnOf<T>(name: string, field: Field, shown: ShownMembers<T>): Column<T> {
  const { title = name, kind } = field;
  const own = (record: T): string | number | undefined => textOf(field, Object(record)[name]);
  const { show = own, ...column }: ShownMember<T> = memberOf(shown, name);
  return { title, value: show, ...(kind?.hasLines ? { lines: true } : {}), ...column };
}

function memberOf<T>(shown: ShownMembers<T>, name: string): ShownMember<T> {
  const { [name]: member = {} } = shown as Readonly<
    Record<string, ShownMember<T> | Column<T>["value"] | undefined>
  >;
  return typeof member === "function" ? { show: member } : member;
}

/** A value as people write it; `undefined` where there is nothing to say. */
function textOf({ kind, words, none }: Field, value: unknown): string | number | undefined {
  if (value === null || value === undefined || value === none) return undefined;
  const text = kind === undefined ? (value as string | number) : kind.write(value);
  return words === undefined ? text : words(String(text));
}
