import { type SchemaBreak, UNPROVEN } from "../../domain/action.ts";
import { fieldName, pointerTo } from "../../json/field-path.ts";
import { quoted, requirementOf, shortened } from "../validate/errors.ts";
import { isCheckedFormat } from "../validate/formats.ts";
import { type Violation, NAME, type Location } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";

export type BreakSide = SchemaBreak["side"];

/** A person does not read payloads with more characters of JSON. */
const MAX_EXAMPLE_CHARACTERS = 4_096;

/** A violation in terms of the old and the new schema instead of left and right. */
interface SchemaChange {
  readonly side: BreakSide;
  readonly keyword: string;
  readonly violation: Violation;
  readonly old: SchemaNode | undefined;
  readonly next: SchemaNode | undefined;
  readonly was: unknown;
  readonly is: unknown;
}

export function breakOf(
  side: BreakSide,
  violation: Violation,
  payload: { value: unknown } | undefined,
): SchemaBreak {
  const change = changeOf(side, violation);
  const { was, is } = change;
  const isShort = payload !== undefined && JSON.stringify(payload.value).length <= MAX_EXAMPLE_CHARACTERS;
  const what = whatChanged(change);
  return {
    side,
    pointer: pointerFor(change),
    field: fieldOf(violation),
    ...(was === undefined ? {} : { was: shortened(was) }),
    ...(is === undefined ? {} : { is: shortened(is) }),
    change: what,
    message: `${what} ${whoBreaks(change, payload !== undefined)}`,
    remedy: remedyFor(change),
    certainty: payload === undefined ? "cannot_prove" : "proven",
    ...(isShort ? { example: payload.value } : {}),
  };
}

/** Violations that are one break to a reader have one key. */
export function breakKey(side: BreakSide, violation: Violation): string {
  const { keyword, member = "", right } = violation;
  return `${side} ${right.pointer} ${keyword} ${member}`;
}

function changeOf(side: BreakSide, violation: Violation): SchemaChange {
  const { right, keyword, member, location } = violation;
  const nodes = location.left.nodes.filter((node) => node.document !== right.document);
  const left =
    nodes.find((node) => node.pointer === right.pointer && node.keywords.includes(keyword)) ??
    nodes.find((node) => node.keywords.includes(keyword)) ??
    nodes.find((node) => node.pointer === right.pointer) ??
    nodes[0];
  const [old, next] = side === "producer" ? [left, right] : [right, left];
  const value = (node: SchemaNode | undefined): unknown => {
    if (node === undefined || typeof node.schema === "boolean") return node?.schema;
    if (violation.isRemoved === true) return node.properties.get(String(member))?.schema;
    return keyword === "false" ? node.schema : node.schema[keyword];
  };
  return { side, keyword, violation, old, next, was: value(old), is: value(next) };
}

function pointerFor({ side, keyword, violation, old, next, is }: SchemaChange): string {
  const { member, right, isRemoved } = violation;
  if (isRemoved === true) {
    const owner = [old, ...violation.location.left.nodes].find((node) =>
      node?.properties.has(String(member)),
    );
    const isOld = (owner?.document === right.document) === (side === "consumer");
    if (owner !== undefined && isOld) {
      return pointerTo(pointerTo(owner.pointer, "properties"), String(member));
    }
  }
  if (keyword === "false") return right.pointer;
  const owner = is === undefined ? (old ?? right) : (next ?? right);
  const pointer = pointerTo(owner.pointer, keyword);
  if (isRemoved === true || member === undefined || keyword === "required" || keyword === "anyOf")
    return pointer;
  return pointerTo(pointer, member);
}

/** The place in payloads: a property that is at fault, else what the keyword is about. */
function fieldOf({ location, keyword, member, isRemoved }: Violation): string {
  const path = pathTo(location) ?? pathTo(location.parent!) ?? [];
  return fieldName(isRemoved === true || keyword === "required" ? [...path, member!] : path);
}

function whatChanged({ side, keyword, violation, was, is }: SchemaChange): string {
  const { location, member, isRemoved } = violation;
  const about = locationName(location);
  const where = pathTo(location)?.length ? about : capitalized(about);
  const property = `The property ${quoted(member)}${within(location)}`;
  if (isRemoved === true) {
    return keyword === "additionalProperties" &&
      location.left.nodes.every((node) => !node.properties.has(String(member)))
      ? `${property} is not allowed any more.`
      : `${property} is gone.`;
  }
  switch (keyword) {
    case "required":
      return `${property} ${side === "producer" ? "has become" : "is no longer"} required.`;
    case "false":
      return `${where} is not allowed any more.`;
    case "additionalProperties":
      return is === false
        ? `${where} no longer allows properties that the schema does not list.`
        : `The rule for properties of ${about} that are not listed has changed.`;
    case "uniqueItems":
      return `${where} ${side === "producer" ? "must not" : "may"} hold the same item twice.`;
    default: {
      const before = isUnchecked(keyword, was) ? undefined : requirementOf(keyword, was);
      const now = requirementOf(keyword, is);
      if (now !== undefined && before !== undefined)
        return `${where} ${now}; before, it ${before.replace(/^must /, "had to ")}.`;
      if (now !== undefined) return `${where} ${now}, which is new.`;
      if (before !== undefined) return `${where} ${before.replace(/^must /, "no longer has to ")}.`;
      const change = was === undefined ? "is new" : is === undefined ? "was removed" : "has changed";
      return `The ${keyword} rule for ${about} ${change}.`;
    }
  }
}

function whoBreaks({ side, keyword, violation }: SchemaChange, isProven: boolean): string {
  if (!isProven) return UNPROVEN[side];
  if (side === "producer") {
    if (keyword === "required") return "A producer that does not send it is refused.";
    if (violation.isRemoved === true) return "A producer that sends it is refused.";
    return "A producer that keeps to the old schema is refused.";
  }
  if (keyword === "required") return "A consumer that counts on it may not find it.";
  if (violation.isRemoved === true) return "A consumer that reads it may find anything there.";
  return "A consumer written for the old schema may get what it does not expect.";
}

/** What could be done instead of the change, beside a new version of the action. */
function remedyFor({ side, keyword, violation, old, was, is }: SchemaChange): string {
  const member = quoted(violation.member);
  if (violation.isRemoved === true)
    return `Keep the property ${member}; it need not be sent where it is not required.`;
  switch (keyword) {
    case "required":
      if (side === "consumer") return `Keep ${member} in required.`;
      return old?.properties.has(String(violation.member)) === true
        ? `Leave ${member} out of required.`
        : `Add ${member} as an optional property.`;
    case "false":
      return "Keep it allowed.";
    case "additionalProperties":
      return is === false ? "Leave the object open." : "Leave additionalProperties as it is.";
    default: {
      if (isUnchecked(keyword, was)) {
        return `The format ${quoted(was)} checked nothing. Where all payloads keep to the new one already, apply it with compatibility none.`;
      }
      const keep = was === undefined ? `Leave ${keyword} out` : `Leave ${keyword} as it is`;
      return `${keep}, and add an optional property for what is new.`;
    }
  }
}

/** A misspelt format, such as `emial`, checks nothing: to correct it is a new rule. */
function isUnchecked(keyword: string, value: unknown): boolean {
  return keyword === "format" && typeof value === "string" && !isCheckedFormat(value);
}

/** Names the location as it is written inside a sentence. */
function locationName(location: Location): string {
  const path = pathTo(location);
  if (path === undefined) return "a property's name";
  return path.length === 0 ? "the payload" : fieldName(path);
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function within(location: Location): string {
  const path = pathTo(location);
  return path === undefined || path.length === 0 ? "" : ` of ${fieldName(path)}`;
}

function pathTo(location: Location): (string | number)[] | undefined {
  if (location.parent === undefined) return [];
  const path = pathTo(location.parent);
  if (path === undefined || location.step === NAME) return undefined;
  return [...path, location.step];
}
