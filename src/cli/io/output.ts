import { EvregError } from "../../domain/error.ts";
import { encodeJson } from "../../json/raw-json.ts";
import type { Logger } from "../../runtime/logger.ts";
import { type Column, columnsFor, renderRecord, renderTable } from "./table.ts";
import { escapeControlInJson, escapeControl } from "./text.ts";

export type OutputFormat = "table" | "json" | "jsonl";

/** Characters; a write for each line costs more than the line itself. */
const WRITE_AT_ONCE = 64 * 1024;

/** The envelope of an answer. */
interface JsonEnvelope<T> {
  readonly data: T;
  readonly meta?: unknown;
}

/**
 * Writes a command's data to stdout, and nothing else: notes, warnings and errors go to stderr.
 *
 * `json` is the API's envelope; in a pipe compact and byte for byte, on a terminal indented, with characters that act on
 * a terminal as their JSON escapes. `jsonl` is one record a line, always compact.
 */
export class Output {
  readonly format: OutputFormat;

  constructor(format: OutputFormat) {
    this.format = format;
  }

  async record<T>(answer: JsonEnvelope<T>, columns: readonly Column<T>[]): Promise<void> {
    if (this.format === "json") return this.document(answer);
    if (this.format === "jsonl") return this.lines([answer.data]);
    return writeOut(renderRecord(columns, answer.data, terminalWidth()));
  }

  /** @param empty what to say on stderr when the table would be empty */
  async list<T>(
    answer: JsonEnvelope<readonly T[]>,
    columns: readonly Column<T>[],
    empty: string,
  ): Promise<void> {
    if (this.format === "json") return this.document(answer);
    if (this.format === "jsonl") return this.lines(answer.data);
    if (answer.data.length === 0) return note(empty);
    const width = terminalWidth();
    const fitting = columnsFor(columns, answer.data, width);
    await writeOut(renderTable(fitting, answer.data, width));
    const shown = new Set(fitting.map(({ title }) => title));
    const dropped = columns.filter(
      ({ title, value }) => !shown.has(title) && answer.data.some((record) => (value(record) ?? "") !== ""),
    );
    if (dropped.length > 0) {
      note(`Too narrow for ${dropped.map(({ title }) => title).join(", ")}; --json has all.`);
    }
  }

  /** A record or a list that people read as sentences. @param render makes them, for lines of so many cells at most */
  async text(
    answer: JsonEnvelope<unknown>,
    render: (width: number | undefined) => string | Promise<string>,
  ): Promise<void> {
    if (this.format === "json") return this.document(answer);
    if (this.format === "jsonl") return this.lines([answer.data].flat());
    return writeOut(await render(terminalWidth()));
  }

  /** A text that is all there is; for a program as the member `data`. */
  async plain(text: string): Promise<void> {
    return this.format === "table" ? writeOut(text) : this.document({ data: text });
  }

  /** Prints a line that only a person reads. */
  note(text: string): void {
    if (this.format === "table") note(text);
  }

  /** One JSON document. */
  async document(value: unknown): Promise<void> {
    await writeOut(`${jsonText(encodeJson(value, process.stdout.isTTY ? 2 : 0))}\n`);
  }

  /** One record a line, whatever the format. */
  async lines(records: readonly unknown[]): Promise<void> {
    let text = "";
    for (const record of records) {
      // Line breaks between the tokens of a payload mean nothing in JSON, but would end the line here.
      text += `${jsonText(encodeJson(record).replace(/[\r\n]+/g, " "))}\n`;
      if (text.length < WRITE_AT_ONCE) continue;
      await writeOut(text);
      text = "";
    }
    if (text !== "") await writeOut(text);
  }
}

/** Resolves when stdout took it, so that a slow reader slows the command down; rejects with EPIPE when it is gone. */
export function writeOut(text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(outputError(error)) : resolve()));
  });
}

/** Why a write to stdout failed, for a person; EPIPE as it is. */
function outputError(error: NodeJS.ErrnoException): Error {
  if (error.code === "EPIPE") return error;
  const message = `The output could not be written (${error.code ?? error.message}); what was asked for is done all the same.`;
  return new EvregError("unavailable", message, {}, { cause: error });
}

/** A line for the person at the terminal, on stderr. It must be safe to show: see `escapeControl`. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Cells of a line: `COLUMNS` when set, else the terminal's; `undefined` in a pipe, where nothing is cut. */
export function terminalWidth(): number | undefined {
  const columns = Number(process.env["COLUMNS"]);
  if (Number.isInteger(columns) && columns >= 20) return columns;
  return process.stdout.isTTY ? Math.max(20, process.stdout.columns) : undefined;
}

function jsonText(json: string): string {
  return process.stdout.isTTY ? escapeControlInJson(json) : json;
}

/** The logger of a command that opens the data folder itself: it prints warnings and errors only. */
export const stderrLogger: Logger = {
  isDebugEnabled: false,
  debug() {},
  info() {},
  warn: (_fields, message) => void process.stderr.write(`Warning: ${escapeControl(message)}\n`),
  error: (_fields, message) => void process.stderr.write(`Error: ${escapeControl(message)}\n`),
};
