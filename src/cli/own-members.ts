import { Flags } from "@oclif/core";
import { RawJson } from "../json/raw-json.ts";
import { typedMember } from "../domain/words/member-search.ts";
import { childOf, type FieldPath } from "../json/field-path.ts";
import { usageError } from "./usage-errors.ts";

/** A member of a payload that a person sets. */
export interface OwnMember {
  readonly path: FieldPath;
  /** The value as JSON: what was typed, or that text as a string. */
  readonly value: RawJson;
}

export const setFlag = Flags.custom<OwnMember>({
  helpValue: "MEMBER=VALUE",
  multiple: true,
  multipleNonGreedy: true,
  parse: (text) => Promise.resolve(ownMember(text)),
});

/** @throws `usage` for what `typedMember` does not read */
export function ownMember(text: string): OwnMember {
  const member = typedMember(text);
  if (member !== undefined) return { path: member.path, value: RawJson.fromText(member.value) };
  throw usageError(
    `takes MEMBER=VALUE, such as total=12, customer.id=7 or 'items[0].sku="A-1"'; not ${JSON.stringify(text)}.`,
  );
}

/**
 * Sets the members in a payload, in their order, and makes the objects and lists on the way. Answers whether it could: an
 * item past the end of a list cannot be set.
 * @param isExact whether the values are put in as they were typed, not parsed
 */
export function setMembers(payload: object, members: readonly OwnMember[], isExact: boolean): boolean {
  return members.every(({ path, value }) => {
    let place = payload;
    for (const [index, step] of path.slice(0, -1).entries()) {
      const before = childOf(place, String(step));
      const plain = before instanceof RawJson ? before.value() : before;
      const isList = typeof path[index + 1] === "number";
      const isUsable = isList ? Array.isArray(plain) : isObject(plain);
      const child = isUsable ? (plain as object) : isList ? [] : {};
      if (!put(place, step, child)) return false;
      place = child;
    }
    return put(place, path.at(-1)!, isExact ? value : value.value());
  });
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function put(place: object, step: string | number, value: unknown): boolean {
  if (Array.isArray(place) && Number(step) > place.length) return false;
  // An assignment to __proto__ would make no member.
  Object.defineProperty(place, step, { value, enumerable: true, writable: true, configurable: true });
  return true;
}
