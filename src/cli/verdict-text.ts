import type { CheckedEvents, SchemaVerdict } from "../domain/action.ts";
import type { CompatibilityMode } from "../domain/compatibility.ts";
import type { EvregError } from "../domain/error.ts";
import { annotationLine } from "./github-annotation.ts";
import { breakLines } from "./break-lines.ts";
import { printableLine } from "./printable.ts";

/** What was judged, and where its text stands. */
export interface Judged {
  readonly action: string;
  /** Of the file; `undefined` for stdin. */
  readonly file: string | undefined;
  readonly lineOf: (pointer: string) => number;
  /** Where it was judged by another mode than the action's, to which an update is held. */
  readonly modes?: { readonly asked: CompatibilityMode; readonly own: CompatibilityMode };
}

/** Failures that an annotation tells; a log shows few, and `--json` has them all. */
const TOLD_FAILURES = 10;
/** Of events that fail for the same reason. */
const TOLD_EVENTS = 5;

/** For a person: a line for each break, warning and failure, then the verdict. */
export function verdictText(verdict: SchemaVerdict, judged: Judged): string {
  const place = (pointer: string) =>
    `${printableLine(judged.file ?? "stdin")}:${judged.lineOf(pointer)}: ${printableLine(pointer || "(root)")}`;
  const lines = [
    ...verdict.breaks.flatMap((broken) => [
      `${place(broken.pointer)}: ${printableLine(broken.message)}`,
      ...breakLines(broken).map((line) => `  ${line}`),
    ]),
    ...verdict.warnings.map(
      ({ pointer, message }) => `${place(pointer)}: Warning: ${printableLine(message)}`,
    ),
    ...failureLines(verdict.replay),
    summary(verdict, judged),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** For the log of a GitHub workflow. */
export function verdictAnnotations(verdict: SchemaVerdict, judged: Judged): string {
  const { action, file, lineOf } = judged;
  const breaks = verdict.breaks.map(({ pointer, message, remedy }) =>
    annotationLine({
      level: "error",
      file,
      line: lineOf(pointer),
      title: `Breaks ${action}`,
      message: `${pointer || "(root)"}: ${message} ${remedy}`,
    }),
  );
  const warnings = verdict.warnings.map(({ pointer, message }) =>
    annotationLine({ level: "warning", file, line: lineOf(pointer), title: "Schema", message }),
  );
  const { replay } = verdict;
  const events = replay === null || replay.failed === 0 ? [] : [eventsAnnotation(replay, action, file)];
  const isWell = breaks.length === 0 && events.length === 0;
  // Else nothing would tell a check that passed from one that was not made.
  const passed = isWell ? [passedAnnotation(verdict, judged)] : [];
  return [...breaks, ...warnings, ...events, ...passed].join("");
}

function passedAnnotation(verdict: SchemaVerdict, judged: Judged): string {
  const { action, file } = judged;
  const message = summary(verdict, judged);
  return annotationLine({ level: "notice", file, line: 1, title: `Checked ${action}`, message });
}

/** What keeps a file from being a schema that can be judged, or it from being judged. */
export function faultAnnotation(
  { message, details }: EvregError,
  file: string | undefined,
  lineOf: (pointer: string) => number,
): string {
  const { pointer } = details;
  const [, line = typeof pointer === "string" ? lineOf(pointer) : 1] = /\bline (\d+)/.exec(message) ?? [];
  return annotationLine({ level: "error", file, line: Number(line), title: "Not checked", message });
}

function eventsAnnotation(replay: CheckedEvents, action: string, file: string | undefined): string {
  const lines = failureLines(replay);
  const more = lines.length - TOLD_FAILURES;
  const told = more > 0 ? [...lines.slice(0, TOLD_FAILURES), `and ${more} lines more`] : lines;
  const message = [eventsSummary(replay), ...told].join("\n");
  return annotationLine({ level: "error", file, line: 1, title: `Events of ${action}`, message });
}

/** A line for each reason, with the newest of its events, and one for the events that the answer has no reasons of. */
function failureLines(replay: CheckedEvents | null): string[] {
  if (replay === null) return [];
  const alike = new Map<string, number[]>();
  for (const { event, field, message } of replay.failures) {
    const reason = printableLine(`${field === "" ? "the payload" : field} ${message}`);
    alike.set(reason, [...(alike.get(reason) ?? []), event]);
  }
  const lines = [...alike].map(([reason, events]) => `${eventsNamed(events)}: ${reason}`);
  const untold = replay.failed - replay.failures.length;
  return untold > 0
    ? [...lines, `${untold.toLocaleString("en")} older events fail too, not told here.`]
    : lines;
}

function eventsNamed(events: readonly number[]): string {
  const [first, ...others] = events;
  if (others.length === 0) return `Event ${first}`;
  const more = events.length - TOLD_EVENTS;
  const shown = events.slice(0, TOLD_EVENTS).join(", ");
  return `Events ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

function summary({ compatible, breaks, replay }: SchemaVerdict, { action, modes }: Judged): string {
  const count = `${breaks.length} ${breaks.length === 1 ? "break" : "breaks"}`;
  let verdict = compatible
    ? `Compatible: an update of ${action} with it would be applied.`
    : `Not compatible: ${count}; an update of ${action} with it would be refused.`;
  if (modes !== undefined) {
    const judgement = compatible ? "Compatible" : "Not compatible";
    const found = compatible ? "" : `: ${count}`;
    verdict = `${judgement} in the mode ${modes.asked}${found}. An update of ${action} is held to its own mode, ${modes.own}; leave out --mode to check for that.`;
  }
  if (replay === null) return verdict;
  // What the old schema says nothing of is no promise, but may well be in events.
  const but =
    compatible && replay.failed > 0 ? " Yet events like those above would be refused from then on." : "";
  return `${verdict}${but} ${eventsSummary(replay)}`;
}

function eventsSummary({ checked, failed }: CheckedEvents): string {
  if (checked === 0) return "There are no events to check.";
  const events = checked === 1 ? "The last event was checked" : `The last ${checked} events were checked`;
  return `${events}: ${failed === 0 ? "all conform" : `${failed} ${failed === 1 ? "does" : "do"} not conform`}.`;
}
