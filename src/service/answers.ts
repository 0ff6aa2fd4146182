import type { Action } from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { parseIsoTime } from "../domain/iso-time.ts";
import { malformedField } from "../domain/query.ts";
import type { StoredAction } from "../store/actions.ts";

/** No such record, or none that the principal may know of. */
export function notFound(what: string, id: number | string, field?: string): EvregError {
  const shown = typeof id === "number" ? id : JSON.stringify(id.slice(0, 128).toWellFormed());
  return new EvregError(
    "not_found",
    `There is no ${what} ${shown}.`,
    field === undefined ? {} : { field, value: id },
  );
}

/** For what nobody can do with an action whose events are published by evreg about itself. */
export function ownAction(name: string, done: "changed" | "published"): EvregError {
  return invalidField(
    "action",
    `${name} tells of evreg itself and cannot be ${done} by anybody; it can be read and subscribed to`,
    name,
  );
}

/** @throws `malformed` unless it is a whole number from 1 */
export function checkId(id: number, field = "id"): number {
  if (Number.isSafeInteger(id) && id >= 1) return id;
  throw malformedField(field, "must be a whole number from 1", id);
}

/** The record as it is answered. */
export function actionOf(stored: StoredAction): Action {
  const { actionId: _a, edition: _e, deprecatedMs: _d, isBuiltIn: _b, ...action } = stored;
  return action;
}

/**
 * The bounds of a time range whose texts have been checked.
 * @throws `malformed` for a range that ends before it begins or holds nothing
 */
export function timeRange(query: { readonly from?: string; readonly to?: string }): {
  fromMs?: number;
  toMs?: number;
} {
  const fromMs = query.from === undefined ? undefined : parseIsoTime(query.from);
  const toMs = query.to === undefined ? undefined : parseIsoTime(query.to);
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs) {
    throw malformedField(
      "to",
      "must be later than from: the range begins with from and ends just before to",
      query.to,
    );
  }
  return { ...(fromMs === undefined ? {} : { fromMs }), ...(toMs === undefined ? {} : { toMs }) };
}

/** The same object without its `undefined` members. */
export function given<T extends object>(members: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
