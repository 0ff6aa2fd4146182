import type { PayloadError } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import type { BatchItemError, NewEvent } from "../domain/event.ts";
import { MAX_FAILURE_BYTES } from "../schema/limits.ts";
import { type Failure, shortened, shortenedText } from "../schema/validate/errors.ts";
import type { LoadedAction } from "./compiled-actions.ts";
import { ownAction } from "./requests.ts";

// What refused events are answered with.

/** Each text and value of a refusal in a batch is cut to so many bytes. */
const BRIEF_BYTES = 256;

/** What publishing to an action that takes no events is refused with, whatever is in them. */
export function takesNoEvents(name: string, { isBuiltIn, successor }: LoadedAction): EvregError {
  if (isBuiltIn) return ownAction(name, "published");
  const instead = successor === null ? "" : `; publish to ${successor} instead`;
  const message = `is retired and takes no events any more${instead}`;
  return new EvregError("gone", `${name} ${message}.`, { field: "action", message, value: name, successor });
}

export function nonConforming({ action }: NewEvent, { others = [], ...first }: Failure): EvregError {
  const { field, message } = first;
  return new EvregError(
    "invalid",
    `The payload does not conform to the schema of ${action}: ${field === "" ? "it" : field} ${message}`,
    { ...first, errors: shownFailures({ ...first, others }) },
  );
}

/** The first, and those after it that fit into one answer. */
export function shownFailures({ others = [], ...first }: Failure): readonly PayloadError[] {
  const failures = [first, ...others];
  let bytes = 1;
  const over = failures.findIndex((failure) => (bytes += jsonBytes(failure) + 1) > MAX_FAILURE_BYTES);
  return over === -1 ? failures : failures.slice(0, Math.max(over, 1));
}

function jsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

export function keyConflict({ idempotency_key: key }: NewEvent): EvregError {
  const message =
    "was used before in this application, with another action or payload; a new event needs a new key";
  const details = { field: "idempotency_key", message, value: key };
  return new EvregError("conflict", `idempotency_key: ${message}.`, details);
}

export function schemaKeepsChanging(action: string): EvregError {
  return new EvregError(
    "unavailable",
    `The schema of ${action} kept changing while the event was checked against it. Nothing was stored; try again.`,
  );
}

/** The refusals of a batch by the places of its items: of each the first broken rule, in a few hundred bytes. */
export function refusalsIn(results: readonly unknown[]): readonly BatchItemError[] {
  return results.flatMap((failure, index) => (failure instanceof EvregError ? [brief(index, failure)] : []));
}

function brief(index: number, failure: EvregError): BatchItemError {
  const { error, details, code } = failure.body();
  const first = Object.entries(details).filter(([name]) => name !== "errors");
  return {
    index,
    error: shortenedText(error, BRIEF_BYTES),
    details: Object.fromEntries(first.map(([name, value]) => [name, shortened(value, BRIEF_BYTES)])),
    code,
  };
}
