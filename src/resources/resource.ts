import type { Candidate } from "../cli/completion.ts";
import type { Column } from "../cli/io/table.ts";

/** How a member of a record is shown, alone and in listings. */
interface Field<T> extends Pick<Column<T>, "color" | "block" | "lines"> {
  readonly title: string;
  /** If it is not the member itself; where it answers `undefined`, a single record has no line for it. */
  readonly show?: Column<T>["value"];
}

/** By member, in the order of the lines; a text is the title alone. */
export type Fields<T> = { readonly [K in keyof T & string]?: string | Field<T> };

/** How wide a member's column is in a listing, and what is shown there instead. */
export type ListColumns<T> = {
  readonly [K in keyof T & string]?: Partial<Omit<Column<T>, "block" | "lines">>;
};

/** What all commands of one noun share. */
export interface Resource<T> {
  readonly noun: "action" | "event" | "subscription" | "delivery" | "replay" | "token";
  /** Also of the port's part that has its operations. */
  readonly plural: "actions" | "events" | "subscriptions" | "deliveries" | "replays" | "tokens";
  /** The lines of one record. */
  readonly record: readonly Column<T>[];
  readonly list: readonly Column<T>[];
  /** What a listing says that is empty and leaves nothing out. */
  readonly none: () => string;
  /** Which of them is meant, at the press of a key; absent where there are too many to choose from. */
  readonly label?: (record: T) => Candidate;
}

export function recordColumns<T>(fields: Fields<T>): Column<T>[] {
  return Object.entries<string | Field<T> | undefined>(fields).map((entry) => columnOf(...entry));
}

/** Titles are those of the fields, in capitals. */
export function listColumns<T>(fields: Fields<T>, columns: ListColumns<T>): Column<T>[] {
  const known = fields as Readonly<Record<string, string | Field<T> | undefined>>;
  return Object.entries<Partial<Column<T>> | undefined>(columns).map(([member, column]) => {
    const { title, value, color } = columnOf(member, known[member]);
    return Object.assign({ title: title.toUpperCase(), value }, color && { color }, column);
  });
}

function columnOf<T>(member: string, field: string | Field<T> = member): Column<T> {
  const { show, ...column } = typeof field === "string" ? { title: field } : field;
  const own: Column<T>["value"] = (record) => Object(record)[member] ?? undefined;
  return { ...column, value: show ?? own };
}
