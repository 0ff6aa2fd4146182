import { styleText } from "node:util";
import { escapeControl, escapeControlKeepingLines, pad, textWidth, truncate, wrap } from "./text.ts";

/** One column of a listing, or one line of a single record. */
export interface Column<T> {
  readonly title: string;
  readonly value: (record: T) => string | number | boolean | null | undefined;
  readonly align?: "right";
  /** Fewest cells the column may be cut down to when the terminal is narrow; never cut when absent. */
  readonly shrinkTo?: number;
  /** What people copy: cut only where dropping other columns is not enough. */
  readonly keepWhole?: boolean;
  /** A time, ISO 8601 UTC. A narrow terminal shows today's without the date, and others to the minute. */
  readonly time?: true;
  /** A listing that is too wide drops columns that have this, the lowest first. */
  readonly dropOrder?: number;
  readonly color?: (record: T) => Color | undefined;
  /** The value stands under its title with its own line breaks, in a single record. */
  readonly block?: boolean;
  /** The value's lines stand below each other, beside the title, in a single record. */
  readonly lines?: boolean;
}

const GAP = "  ";
const NOTHING = "-";

export type Color = "green" | "yellow" | "red" | "dim";
type Style = Color | "bold";

/**
 * A listing as lines of at most `width` cells. Columns that may shrink do so; where that is not enough, each record becomes
 * a block of `title  value` lines, so that nothing wraps in the middle of a row.
 * @param width cells of a line; `undefined` when the reader is no terminal and nothing is cut
 */
export function renderTable<T>(
  columns: readonly Column<T>[],
  records: readonly T[],
  width: number | undefined,
): string {
  const rows = records.map((record) => columns.map((column) => cell(column, record)));
  const widths = fitColumns(columns, rows, width ?? Infinity);
  if (widths === undefined) {
    return records.map((record) => renderRecord(columns, record, width)).join("\n");
  }
  const line = (cells: readonly string[], style: (column: Column<T>) => Style | undefined): string => {
    const parts = columns.map((column, at) => {
      const { align } = column;
      const cellWidth = widths[at]!;
      const shown = truncate(cells[at]!, cellWidth);
      const isLast = at === columns.length - 1 && align === undefined;
      return styled(isLast ? shown : pad(shown, cellWidth, align ?? "left"), style(column));
    });
    return `${parts.join(GAP).trimEnd()}\n`;
  };
  const titles = columns.map(({ title }) => title);
  const body = rows.map((cells, row) => line(cells, ({ color }) => color?.(records[row]!)));
  return [line(titles, () => "bold"), ...body].join("");
}

/**
 * The columns that a listing of this width has room for. Those without a value go first. Times are shortened where that keeps
 * all texts whole; else texts are cut, and where that is not enough, both. Then columns with a `dropOrder` go, one after the
 * other. What people copy is cut last. Where nothing helps, all columns are answered: as blocks, nothing of a record is left out.
 */
export function columnsFor<T>(
  columns: readonly Column<T>[],
  records: readonly T[],
  width: number | undefined,
): readonly Column<T>[] {
  const fits = (tried: readonly Column<T>[]): boolean => {
    const rows = records.map((record) => tried.map((column) => cell(column, record)));
    return fitColumns(tried, rows, width ?? Infinity) !== undefined;
  };
  const filled = columns.filter((column) => records.some((record) => cell(column, record) !== NOTHING));
  const short = filled.map(shortTime);
  const spare = short
    .filter(({ dropOrder }) => dropOrder !== undefined)
    .toSorted((one, other) => one.dropOrder! - other.dropOrder!);
  const fewer = [...spare.keys(), spare.length].map((count) =>
    short.filter((column) => !spare.slice(0, count).includes(column)),
  );
  const whole = [columns, filled, short].map((all) => all.map(uncut));
  const cut = [filled, ...fewer].map((all) => all.map(namesUncut));
  return [...whole, ...cut].find(fits) ?? fewer.findLast(fits) ?? columns;
}

function uncut<T>(column: Column<T>): Column<T> {
  const { shrinkTo: _, ...rest } = column;
  return rest;
}

/** What people copy is not cut, other texts are. */
function namesUncut<T>(column: Column<T>): Column<T> {
  return column.keepWhole === true ? uncut(column) : column;
}

/** Shows the time of the day where it is today, else to the minute. */
function shortTime<T>(column: Column<T>): Column<T> {
  if (column.time === undefined) return column;
  const today = new Date().toISOString().slice(0, "2027-01-31T".length);
  const shorter = (time: string): string =>
    time.startsWith(today)
      ? time.slice(today.length).replace(/\.\d+Z$/, "Z")
      : time.replace(/:\d\d\.\d+Z$/, "Z");
  return { ...column, value: (record) => shorter(String(column.value(record) ?? "")) };
}

/** One record as `title  value` lines; long values go on under themselves. */
export function renderRecord<T>(columns: readonly Column<T>[], record: T, width: number | undefined): string {
  const shown = columns.filter((column) => column.value(record) !== undefined);
  const inLine = shown.filter(({ block }) => !block);
  const label = Math.max(0, ...inLine.map(({ title }) => textWidth(title)));
  const cells = width === undefined ? undefined : Math.max(10, width - label - GAP.length);
  const lines = shown.flatMap((column) => {
    const text = String(column.value(record) ?? "");
    if (column.block) {
      const value = escapeControlKeepingLines(text).replaceAll("\n", `\n${GAP}`);
      return [styled(column.title, "bold"), `${GAP}${value}`];
    }
    const values = column.lines ? text.split("\n").map(textOf) : [cell(column, record)];
    const parts = cells === undefined ? values : values.flatMap((value) => wrap(value, cells));
    return parts.map((part, at) => {
      const title = pad(at === 0 ? column.title : "", label, "left");
      return `${styled(title, "bold")}${GAP}${styled(part, column.color?.(record))}`.trimEnd();
    });
  });
  return lines.map((line) => `${line}\n`).join("");
}

function cell<T>(column: Column<T>, record: T): string {
  return textOf(column.value(record));
}

function textOf(value: ReturnType<Column<never>["value"]>): string {
  return value === null || value === undefined || value === "" ? NOTHING : escapeControl(String(value));
}

function styled(text: string, style: Style | undefined): string {
  return style === undefined || text === "" ? text : styleText(style, text, { stream: process.stdout });
}

/**
 * The columns' widths; `undefined` when the line has room for no cut of them. The widest is cut first, and what people copy only once
 * nothing else can be.
 */
function fitColumns<T>(
  columns: readonly Column<T>[],
  rows: readonly (readonly string[])[],
  width: number,
): number[] | undefined {
  const widths = columns.map(({ title }, at) =>
    Math.max(textWidth(title), ...rows.map((row) => textWidth(row[at]!))),
  );
  let excess = widths.reduce((sum, cells) => sum + cells, GAP.length * (widths.length - 1)) - width;
  const least = columns.map(({ shrinkTo = Infinity, title }) => Math.max(shrinkTo, textWidth(title)));
  for (; excess > 0; excess -= 1) {
    const cuttable = [...columns.keys()].filter((at) => widths[at]! > least[at]!);
    const others = cuttable.filter((at) => columns[at]!.keepWhole !== true);
    const [widest] = (others.length > 0 ? others : cuttable).toSorted((a, b) => widths[b]! - widths[a]!);
    if (widest === undefined) return undefined;
    widths[widest]! -= 1;
  }
  return widths;
}

/** How the number of a record stands in a listing. */
export const ID_COLUMN = { title: "ID", align: "right" } as const;

export interface Cell {
  readonly text: string;
  /** How many cells it fills on a terminal, cut or with spaces behind it; as many as it has if absent. */
  readonly cells?: number;
  readonly color?: Color | undefined;
}

/** A line of a stream, whose other lines nobody knows. @param width cells of the line; `undefined` where nothing is cut */
export function streamLine(all: readonly Cell[], width: number | undefined): string {
  let room = width ?? Infinity;
  const parts = all.map(({ text, cells, color }) => {
    const fixed = width === undefined ? undefined : cells;
    const shown = truncate(escapeControl(text), Math.min(fixed ?? Infinity, room));
    const padded = pad(shown, Math.min(fixed ?? 0, room), "left");
    room -= textWidth(padded) + GAP.length;
    // The spaces are not coloured, so that they can be cut off at the end of a line.
    return styled(shown, color) + padded.slice(shown.length);
  });
  return `${parts.join(GAP).trimEnd()}\n`;
}
