import { styleText } from "node:util";
import {
  pad,
  escapeControl,
  escapeControlKeepingLines,
  textWidth,
  truncate,
  truncateAt,
  wrap,
} from "./text.ts";

/** One column of a listing, or one line of a single record. */
export interface Column<T> {
  readonly title: string;
  readonly value: (record: T) => string | number | boolean | null | undefined;
  readonly align?: "right";
  /** Fewest cells the column may be cut down to when the terminal is narrow; never cut when absent. */
  readonly shrinkTo?: number;
  /** Where it is cut: at the end if absent. */
  readonly cut?: "start" | "middle";
  /** What people copy: on a narrow terminal other columns give way first, and it is cut only where that is not enough. */
  readonly keepWhole?: boolean;
  /** A time, ISO 8601 UTC. A narrow terminal shows it to the minute, and `shortYear` without its year. */
  readonly time?: true | "shortYear";
  /** A listing goes without the column where the terminal is too narrow for all of them, the lowest first. */
  readonly dropOrder?: number;
  readonly color?: (record: T) => "green" | "yellow" | "red" | "dim" | undefined;
  /** In a single record: the value stands under its title with its own line breaks. */
  readonly block?: boolean;
  /** In a single record: the value's lines stand below each other, beside the title. */
  readonly lines?: boolean;
}

const GAP = "  ";
const NOTHING = "-";
type Style = "green" | "yellow" | "red" | "dim" | "bold";

/**
 * A listing as lines of at most `width` cells: columns that may shrink do so; where even that is not enough, each
 * record becomes a block of `title  value` lines, so that nothing wraps in the middle of a row.
 *
 * @param width cells of a line; `undefined` when the reader is no terminal and nothing is cut
 */
export function renderTable<T>(
  columns: readonly Column<T>[],
  records: readonly T[],
  width: number | undefined,
): string {
  const rows = cellsOf(columns, records);
  const natural = naturalWidths(columns, rows);
  const widths = width === undefined ? natural : fitColumns(columns, natural, width);
  if (widths === undefined) {
    return records.map((record) => renderRecord(columns, record, width)).join("\n");
  }
  const line = (cells: readonly string[], style: (at: number) => Style | undefined) =>
    cells
      .map((text, at) => {
        const cellWidth = widths[at] ?? 0;
        const { align, cut } = columns[at] ?? {};
        const shown = cut === undefined ? truncate(text, cellWidth) : truncateAt(text, cellWidth, cut);
        const isLast = at === cells.length - 1 && align === undefined;
        const padded = isLast ? shown : pad(shown, cellWidth, align ?? "left");
        return styled(padded, style(at));
      })
      .join(GAP)
      .trimEnd();
  const head = line(
    columns.map((column) => column.title),
    () => "bold",
  );
  const body = records.map((record, row) => line(rows[row] ?? [], (at) => columns[at]?.color?.(record)));
  return [head, ...body].map((text) => `${text}\n`).join("");
}

/**
 * The columns that a listing of this width has room for. Times become shorter, then texts other than names; then those in which
 * no record has anything go, then as many of the spare ones go as it takes; what people copy is cut only where all that does not help. Where
 * nothing does, all of them: as blocks, nothing of a record is left out.
 */
export function columnsFor<T>(
  columns: readonly Column<T>[],
  records: readonly T[],
  width: number | undefined,
): readonly Column<T>[] {
  if (width === undefined) return columns;
  const fits = (tried: readonly Column<T>[]): boolean =>
    fitColumns(tried, naturalWidths(tried, cellsOf(tried, records)), width) !== undefined;
  const filled = columns.filter((column) => records.some((record) => cell(column, record) !== NOTHING));
  const spare = filled.filter((column) => column.dropOrder !== undefined);
  spare.sort((one, other) => one.dropOrder! - other.dropOrder!);
  const fewer = spare.map((_, at) => filled.filter((column) => !spare.slice(0, at + 1).includes(column)));
  const timed = [columns, filled, ...fewer].map((chosen) => {
    const toMinute = chosen.map(toTheMinute);
    return [chosen, toMinute, toMinute.map(withoutYear)];
  });
  const inOrder = timed.flatMap((chosen) => [
    ...chosen.map((tried) => tried.map(neverCut)),
    ...chosen.map((tried) => tried.map(uncut)),
  ]);
  return inOrder.find(fits) ?? timed.flat().findLast(fits) ?? columns;
}

function neverCut<T>(column: Column<T>): Column<T> {
  const { shrinkTo: _, ...rest } = column;
  return rest;
}

function uncut<T>(column: Column<T>): Column<T> {
  return column.keepWhole === true ? neverCut(column) : column;
}

function toTheMinute<T>(column: Column<T>): Column<T> {
  if (column.time === undefined) return column;
  return { ...column, value: (record) => String(column.value(record) ?? "").replace(/:\d\d\.\d+Z$/, "Z") };
}

function withoutYear<T>(column: Column<T>): Column<T> {
  if (column.time !== "shortYear") return column;
  return { ...column, value: (record) => String(column.value(record) ?? "").replace(/^\d{4}-/, "") };
}

function cellsOf<T>(columns: readonly Column<T>[], records: readonly T[]): readonly string[][] {
  return records.map((record) => columns.map((column) => cell(column, record)));
}

function naturalWidths<T>(columns: readonly Column<T>[], rows: readonly string[][]): readonly number[] {
  return columns.map((column, at) =>
    Math.max(textWidth(column.title), ...rows.map((row) => textWidth(row[at] ?? ""))),
  );
}

/** One record as `title  value` lines; long values go on under themselves. */
export function renderRecord<T>(columns: readonly Column<T>[], record: T, width: number | undefined): string {
  const shown = columns.filter((column) => column.value(record) !== undefined);
  const label = Math.max(
    ...shown.filter((column) => !column.block).map((column) => textWidth(column.title)),
    0,
  );
  let text = "";
  for (const column of shown) {
    if (column.block) {
      const value = escapeControlKeepingLines(String(column.value(record) ?? "")).replaceAll(
        "\n",
        `\n${GAP}`,
      );
      text += `${styled(column.title, "bold")}\n${GAP}${value}\n`;
      continue;
    }
    const cells = width === undefined ? undefined : Math.max(10, width - label - GAP.length);
    const values = column.lines
      ? String(column.value(record) ?? "")
          .split("\n")
          .map(textOf)
      : [cell(column, record)];
    const lines = cells === undefined ? values : values.flatMap((value) => wrap(value, cells));
    text += lines
      .map((part, at) => {
        const title = pad(at === 0 ? column.title : "", label, "left");
        return `${styled(title, "bold")}${GAP}${styled(part, column.color?.(record))}`.trimEnd();
      })
      .map((part) => `${part}\n`)
      .join("");
  }
  return text;
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

/** Takes cells from the widest column that may still shrink, its title excepted; `undefined` when the rest is too wide all the same. */
function fitColumns<T>(
  columns: readonly Column<T>[],
  natural: readonly number[],
  width: number,
): number[] | undefined {
  const widths = [...natural];
  let excess = widths.reduce((sum, cells) => sum + cells, GAP.length * (widths.length - 1)) - width;
  while (excess > 0) {
    const widest = widths.reduce<number | undefined>((best, cells, at) => {
      const { shrinkTo, title = "" } = columns[at] ?? {};
      if (shrinkTo === undefined || cells <= Math.max(shrinkTo, textWidth(title))) return best;
      return best === undefined || cells > (widths[best] ?? 0) ? at : best;
    }, undefined);
    if (widest === undefined) return undefined;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

// A file a noun has what is shown of it in listings and alone. Numbers are never cut, and names last: times are
// told to the minute first and whole columns give way, so that a row is one line on a terminal of 80 columns.

/** How the number of a record stands in a listing. */
export const ID_COLUMN = { title: "ID", align: "right" } as const;
