import type { SchemaBreak } from "../../domain/action.ts";
import { fieldName, pointerTo } from "../pointers.ts";
import { demandOf, shortened } from "../validate/errors.ts";
import { type Finding, NAME, type Place } from "./obligation.ts";
import type { SchemaNode } from "../node.ts";

export type Side = SchemaBreak["side"];

/** A payload longer than this as JSON shows nothing to a person. */
const MAX_EXAMPLE_CHARACTERS = 4_096;

/** What a finding says, put the way a person looks at it: old and new instead of left and right. */
interface Told {
  readonly side: Side;
  readonly keyword: string;
  readonly finding: Finding;
  readonly old: SchemaNode | undefined;
  readonly next: SchemaNode | undefined;
  readonly was: unknown;
  readonly is: unknown;
}

export function breakOf(side: Side, finding: Finding, payload: { value: unknown } | undefined): SchemaBreak {
  const told = tell(side, finding);
  const { was, is } = told;
  const isShort = payload !== undefined && JSON.stringify(payload.value).length <= MAX_EXAMPLE_CHARACTERS;
  return {
    side,
    pointer: pointerFor(told),
    ...(was === undefined ? {} : { was: shortened(was) }),
    ...(is === undefined ? {} : { is: shortened(is) }),
    message: messageFor(told, payload !== undefined),
    remedy: remedyFor(told),
    certainty: payload === undefined ? "cannot_prove" : "proven",
    ...(isShort ? { example: payload.value } : {}),
  };
}

/** What two findings share that are one to a person. */
export function breakKey(side: Side, finding: Finding): string {
  const { keyword, part = "", right } = finding;
  return `${side} ${right.pointer} ${keyword} ${part}`;
}

function tell(side: Side, finding: Finding): Told {
  const { right, keyword, part, place } = finding;
  const shapes = place.left.shapes.filter((shape) => shape.document !== right.document);
  const left =
    shapes.find((shape) => shape.pointer === right.pointer && shape.keywords.includes(keyword)) ??
    shapes.find((shape) => shape.keywords.includes(keyword)) ??
    shapes.find((shape) => shape.pointer === right.pointer) ??
    shapes[0];
  const [old, next] = side === "producer" ? [left, right] : [right, left];
  const value = (shape: SchemaNode | undefined): unknown => {
    if (shape === undefined || typeof shape.schema === "boolean") return shape?.schema;
    if (finding.isGone === true) return shape.properties.get(String(part))?.schema;
    return keyword === "false" ? shape.schema : shape.schema[keyword];
  };
  return { side, keyword, finding, old, next, was: value(old), is: value(next) };
}

function pointerFor({ side, keyword, finding, old, next, is }: Told): string {
  const { part, right, isGone } = finding;
  if (isGone === true) {
    const owner = [old, ...finding.place.left.shapes].find((shape) => shape?.properties.has(String(part)));
    const isOld = (owner?.document === right.document) === (side === "consumer");
    if (owner !== undefined && isOld) {
      return pointerTo(pointerTo(owner.pointer, "properties"), String(part));
    }
  }
  if (keyword === "false") return right.pointer;
  const owner = is === undefined ? (old ?? right) : (next ?? right);
  const pointer = pointerTo(owner.pointer, keyword);
  if (isGone === true || part === undefined || keyword === "required" || keyword === "anyOf") return pointer;
  return pointerTo(pointer, part);
}

/** What changed, who breaks and how. */
function messageFor(told: Told, isProven: boolean): string {
  const sentences = [whatChanged(told), whoBreaks(told, isProven)];
  return sentences.join(" ");
}

function whatChanged({ side, keyword, finding, was, is }: Told): string {
  const about = placeName(finding.place);
  const where = pathTo(finding.place)?.length ? about : capitalized(about);
  const property = `The property ${quoted(finding.part)}${within(finding.place)}`;
  if (finding.isGone === true) {
    return keyword === "additionalProperties" &&
      finding.place.left.shapes.every((shape) => !shape.properties.has(String(finding.part)))
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
        ? `${where} no longer takes properties that the schema does not list.`
        : `What ${about} may hold beside the listed properties has changed.`;
    case "uniqueItems":
      return side === "producer"
        ? `${where} must not hold the same item twice.`
        : `${where} may hold the same item twice.`;
    default: {
      const [before, now] = [demandOf(keyword, was), demandOf(keyword, is)];
      if (now !== undefined && before !== undefined)
        return `${where} ${now}; before, it ${before.replace(/^must /, "had to ")}.`;
      if (now !== undefined) return `${where} ${now}, which is new.`;
      if (before !== undefined) return `No longer asked for: ${about} ${before}.`;
      const change = was === undefined ? "is new" : is === undefined ? "is gone" : "has changed";
      return `What ${keyword} says about ${about} ${change}.`;
    }
  }
}

function whoBreaks({ side, keyword, finding }: Told, isProven: boolean): string {
  if (!isProven) {
    return side === "producer"
      ? "It cannot be proven that all a producer may send today is still accepted."
      : "It cannot be proven that a consumer written for the old schema understands all that may come.";
  }
  if (side === "producer") {
    if (keyword === "required") return "A producer that does not send it is refused.";
    if (finding.isGone === true) return "A producer that sends it is refused.";
    return "A producer that keeps to the old schema is refused.";
  }
  if (keyword === "required") return "A consumer that counts on it may not find it.";
  if (finding.isGone === true) return "A consumer that reads it may find anything there.";
  return "A consumer written for the old schema may get what it does not expect.";
}

/** What could be done instead of the change, beside a new version of the action. */
function remedyFor({ side, keyword, finding, old, was, is }: Told): string {
  const part = quoted(finding.part);
  if (finding.isGone === true)
    return `Keep the property ${part}; it need not be sent where it is not required.`;
  switch (keyword) {
    case "required":
      if (side === "consumer") return `Keep ${part} in the list of what is required.`;
      return old?.properties.has(String(finding.part)) === true
        ? `Leave ${part} out of the list of what is required.`
        : `Add ${part} as an optional property.`;
    case "false":
      return "Keep it allowed.";
    case "additionalProperties":
      return is === false ? "Leave the object open." : "Leave additionalProperties as it is.";
    default: {
      const keep = was === undefined ? `Leave ${keyword} out` : `Leave ${keyword} as it is`;
      return `${keep}, and add an optional property for what is new.`;
    }
  }
}

/** As it stands inside of a sentence. */
function placeName(place: Place): string {
  const path = pathTo(place);
  if (path === undefined) return "a property's name";
  return path.length === 0 ? "the payload" : fieldName(path);
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function within(place: Place): string {
  const path = pathTo(place);
  return path === undefined || path.length === 0 ? "" : ` of ${fieldName(path)}`;
}

function pathTo(place: Place): (string | number)[] | undefined {
  if (place.parent === undefined) return [];
  const path = pathTo(place.parent);
  if (path === undefined || place.step === NAME) return undefined;
  return [...path, place.step];
}

function quoted(name: unknown): string {
  const text = JSON.stringify(name) ?? "";
  return text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text;
}
