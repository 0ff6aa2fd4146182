import { EvregError } from "../../domain/error.ts";
import { checkActionName, checkLabel, NAME_LENGTH } from "../../domain/names.ts";
import { actionsIn, type ImportedAction, type SkippedMessage } from "../../import/actions.ts";
import { readCatalogue } from "../../import/catalogue.ts";
import { readInput } from "../io/input.ts";
import { note, writeOut } from "../io/output.ts";
import { firstOf, escapeControl } from "../io/text.ts";
import { pathOf } from "../../json/field-path.ts";
import { usageError } from "../usage-errors.ts";
import { problemsError } from "./declarations.ts";
import { type ParsedDocument, parseFile } from "./documents.ts";
import { type ExportFormat, exportText } from "./export.ts";

export interface ImportChoices {
  readonly format: ExportFormat;
  readonly application: string | undefined;
  readonly prefix: string | undefined;
}

/** Skipped messages that an error names. */
const MAX_SKIPPED = 50;
/** Further lines of the same note that are named before they are only counted. */
const MAX_LINES = 4;

/**
 * Prints as a registry file what a document declares, and notes on stderr what differs from the document.
 * @returns whether there is an action for each message
 * @throws `usage` for a document that is not read, `invalid` where there is no action in it
 */
export async function importDocument(path: string, choices: ImportChoices): Promise<boolean> {
  const name = path === "-" ? "stdin" : path;
  const typed = choices.prefix?.replace(/\.$/, "");
  const prefix =
    typed === undefined ? undefined : named("--prefix: it", () => checkActionName("prefix", typed));
  const document = parsed(name, await readInput(path));
  const catalogue = readCatalogue(document.value, name);
  const subject =
    choices.application === undefined
      ? "Name the owner with --application NAME: the document's info.title"
      : "--application: it";
  const application = named(subject, () =>
    checkLabel("application", choices.application ?? catalogue.title ?? ""),
  );
  const { actions, skipped } = actionsIn(catalogue, prefix);
  const placeOf = placesIn(document);
  const skippedLines = linesOfSkipped(skipped, placeOf);
  if (actions.length === 0) throw nothingImported(name, skippedLines);
  for (const action of actions) printNotes(action, placeOf);
  for (const line of skippedLines) note(`Left out: ${line}`);
  const declared = actions.map(({ action, schemata, deprecated }) =>
    Object.assign({ action, application, schemata }, deprecated ? { deprecated } : {}),
  );
  await writeOut(exportText({ actions: declared, subscriptions: [] }, choices.format));
  return skippedLines.length === 0;
}

function parsed(name: string, bytes: Buffer): ParsedDocument {
  const document = parseFile(name, bytes);
  if ("problem" in document) throw problemsError([document.problem]);
  return document;
}

function nothingImported(name: string, skippedLines: readonly string[]): EvregError {
  if (skippedLines.length === 0) {
    return new EvregError("invalid", `${name} declares no webhooks (OpenAPI 3.1) or messages (AsyncAPI 3).`);
  }
  const lines = firstOf(skippedLines, MAX_SKIPPED).join("\n  ");
  return new EvregError("invalid", `No action comes of ${name}:\n  ${lines}\nNothing was written.`);
}

/** @param subject how the sentence about a name that is refused begins */
function named(subject: string, check: () => string): string {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    throw usageError(`${subject} ${String(error.details["message"])}.`);
  }
}

/** Finds the places in the file that JSON pointers lead to: `shop.yaml:12`. */
export function placesIn({ value, place }: ParsedDocument): (pointer: string) => string {
  return (pointer) => place(pathOf(pointer, value));
}

/** What differs in an action from the document, each note once with all its lines. */
function printNotes({ action, notes }: ImportedAction, placeOf: (pointer: string) => string): void {
  const byMessage = Map.groupBy(notes, ({ message }) => message);
  for (const [message, all] of byMessage) {
    const [first = "", ...more] = new Set(all.map(({ pointer }) => placeOf(pointer)));
    const lines = more.slice(0, MAX_LINES).map((place) => place.slice(place.lastIndexOf(":") + 1));
    const rest = more.length - lines.length;
    if (rest > 0) lines.push(`${rest.toLocaleString("en")} more`);
    const also = lines.length === 0 ? "" : ` (also ${lines.join(", ")})`;
    note(escapeControl(`${first}: ${action}: ${message}${also}`));
  }
}

/** A line for each message there is no action for. */
export function linesOfSkipped(
  skipped: readonly SkippedMessage[],
  placeOf: (pointer: string) => string,
): string[] {
  return skipped.map(({ name, place, message }) => {
    const shown = name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH).toWellFormed()}…` : name;
    return escapeControl(`${placeOf(place)}: ${shown}: ${message}`);
  });
}
