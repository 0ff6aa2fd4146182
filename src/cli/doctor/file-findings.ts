import { fine, type Finding, problem } from "../../domain/finding.ts";

const MOST_NAMED = 5;

/** What a look through a data file tells, as far as it concerns what is wrong. */
interface Looked {
  readonly impossible: readonly string[];
  readonly damaged_events: readonly number[];
  readonly events_without_checksum: number;
}

/** Of a file whose pages and indexes are whole. */
export function fileFindings(what: string, looked: Looked): readonly Finding[] {
  const { impossible, damaged_events: damaged, events_without_checksum: unknown } = looked;
  const findings: Finding[] = [];
  if (impossible.length > 0) {
    findings.push(
      problem(
        "records",
        `${what} holds what evreg could not have written: ${some(impossible)}. It is damaged, or was changed by something else.`,
        "Stop the server, and restore a backup that you trust: `evreg restore FILE --force`.",
      ),
    );
  }
  if (damaged.length > 0) {
    findings.push(
      problem(
        "events",
        `${damaged.length === 1 ? "1 event is" : `${damaged.length} events are`} damaged: ${some(damaged)}. What is kept of them is not what was published; they are neither shown nor sent.`,
        "Look at the disk and the memory of the machine; stop the server, and restore a backup from before the damage: `evreg restore FILE --force`.",
      ),
    );
  }
  const whole = `Every page and index of ${what[0]!.toLowerCase()}${what.slice(1)} is whole`;
  if (findings.length > 0) return [fine("integrity", `${whole}.`), ...findings];
  if (unknown === 0) return [fine("integrity", `${whole}, and every event is as it was published.`)];
  const older = unknown === 1 ? "1 event is" : `${unknown.toLocaleString("en")} events are`;
  return [
    fine(
      "integrity",
      `${whole}, and every event with a checksum is as it was published. ${older} from before there were checksums, so of ${unknown === 1 ? "it" : "them"} that is not known.`,
    ),
  ];
}

function some(all: readonly (string | number)[]): string {
  const more = all.length - MOST_NAMED;
  return all.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
