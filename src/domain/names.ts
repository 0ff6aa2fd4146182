import { type EvregError, invalidField } from "./error.ts";

/** Characters in an action's name and in a label. */
export const NAME_LENGTH = 128;

const ACTION = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
/** Every action but those of evreg itself, as the action of a subscription. */
const ANY_ACTION = "*";
/** Ends a pattern: all actions beneath a name. */
const BENEATH = ".*";
/**
 * Control and invisible characters, changes of direction, line separators and non-characters: the inside of a class that
 * every language's regular expressions read alike, as OpenAPI publishes it too.
 */
const UNPRINTABLE =
  "\\x00-\\x1f\\x7f-\\x9f\\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}";
const HAS_UNPRINTABLE = new RegExp(`[${UNPRINTABLE}\\ud800-\\udfff]`, "u");

/** A label as it may be sent, with white space around it: a part of a regular expression. */
export const LABEL_PATTERN = `\\s*[^\\s${UNPRINTABLE}](?:[^${UNPRINTABLE}]{0,${NAME_LENGTH - 2}}[^\\s${UNPRINTABLE}])?\\s*`;
const VERSION_SUFFIX = /\.v([1-9]\d{0,8})$/;

/** @throws `invalid` unless it is 1 to 128 characters of `[A-Za-z0-9_-]` in segments joined by single dots */
export function checkActionName(field: string, value: unknown): string {
  if (typeof value !== "string") throw invalidField(field, "must be a string", value);
  if (value === "") throw invalidField(field, "must not be empty", value);
  if (value.length > NAME_LENGTH) throw tooLong(field, value);
  if (ACTION.test(value)) return value;
  const rule = "must be letters, digits, _ and - in segments joined by single dots, such as user.created";
  throw invalidField(field, rule, value);
}

/** @throws `invalid` unless it is an action's name, a name and `.*` for all beneath it, or `*` for all actions */
export function checkActionPattern(field: string, value: unknown): string {
  if (value === ANY_ACTION) return value;
  if (typeof value !== "string" || !value.includes(ANY_ACTION)) return checkActionName(field, value);
  if (value.length > NAME_LENGTH) throw tooLong(field, value);
  if (value.endsWith(BENEATH) && ACTION.test(value.slice(0, -BENEATH.length))) return value;
  const rule = "must be an action such as order.created, order.* for all beneath order, or * for all";
  throw invalidField(field, rule, value);
}

/** Whether the action of a subscription stands for several, also for some that are made later. */
export function isPattern(action: string): boolean {
  return action.endsWith(ANY_ACTION);
}

/** Whether a subscription with this name or pattern matches the action. */
export function matches(pattern: string, action: string): boolean {
  return pattern === action || patternsOf(action).includes(pattern);
}

/** All patterns that match the action, the widest first. Those of evreg itself are matched only where the pattern names them. */
export function patternsOf(name: string): readonly string[] {
  const beneath = Array.from(name.matchAll(/\./g), ({ index }) => name.slice(0, index) + BENEATH);
  return isReservedName(name) ? beneath : [ANY_ACTION, ...beneath];
}

/** @throws `invalid` as `checkActionName`, and for a reserved name */
export function checkNewActionName(field: string, value: unknown): string {
  const name = checkActionName(field, value);
  if (!isReservedName(name)) return name;
  const rule = "must not begin with evreg., as evreg keeps these names for events about itself";
  throw invalidField(field, rule, name);
}

/**
 * The name of an application or a subscription, without the spaces around it.
 * @throws `invalid` unless it is 1 to 128 printable characters
 */
export function checkLabel(field: string, value: unknown): string {
  if (typeof value !== "string") throw invalidField(field, "must be a string", value);
  const label = value.trim();
  if (label === "") throw invalidField(field, "must not be empty", value);
  // Characters outside the basic plane have two UTF-16 units; counting starts only where that can matter.
  if (label.length > 2 * NAME_LENGTH || Array.from(label).length > NAME_LENGTH) throw tooLong(field, label);
  if (HAS_UNPRINTABLE.test(label)) {
    throw invalidField(field, "must not contain control or invisible characters", label);
  }
  return label;
}

/** A name for a breaking change: `user.created` → `user.created.v2` → `user.created.v3`. A name too long for it is cut. */
export function nextVersionName(action: string): string {
  const version = VERSION_SUFFIX.exec(action);
  const stem = action.slice(0, version?.index);
  const suffix = `.v${Number(version?.[1] ?? 1) + 1}`;
  return stem.slice(0, NAME_LENGTH - suffix.length).replace(/\.$/, "") + suffix;
}

/** Refuses a name of more than 128 characters, without sending all of it back. */
export function tooLong(field: string, value: string): EvregError {
  const start = `${value.slice(0, NAME_LENGTH).toWellFormed()}…`;
  return invalidField(field, `must have at most ${NAME_LENGTH} characters`, start);
}

/** Actions whose names begin so are evreg's own. What happens to their events is not reported as events. */
const RESERVED_PREFIX = "evreg.";

export function isReservedName(action: string): boolean {
  return action.startsWith(RESERVED_PREFIX);
}
