import type { Schemata } from "../domain/action.ts";
import { refillBudget } from "./budget.ts";
import { canonicalText } from "./canonical.ts";
import { pointerTo } from "./field-path.ts";
import { isAnnotation, isDefinitions, isKnown, isObject } from "./keywords.ts";
import type { JsonObject } from "./keywords.ts";
import { referencesIn } from "./references.ts";
import type { References } from "./references.ts";

/** A difference that breaks someone, or that cannot be shown not to. */
export interface SchemaChange {
  /** JSON pointer to the place: in the new schema, or in the old one for what is gone. */
  readonly pointer: string;
  /** A sentence for a person. */
  readonly message: string;
}

/**
 * What keeps one schema from replacing another under the same action; nothing means it may.
 *
 * The rule: optional properties may be added, at any depth of `properties`, `items` and `additionalProperties`, while the
 * lists of what is required stay the same. Annotations and unknown keywords, which check nothing, may change freely.
 * Everything else is reported, also a change that would only loosen the schema: consumers rely on what it promises.
 *
 * Both have passed `checkSchema`.
 */
export function compareSchemas(before: Schemata, after: Schemata): SchemaChange[] {
  refillBudget();
  const comparison = new Comparison(referencesIn(before), referencesIn(after));
  comparison.schemas(before, after, "");
  return comparison.changes;
}

class Comparison {
  readonly changes: SchemaChange[] = [];
  readonly #references: readonly References[];

  constructor(...references: readonly References[]) {
    this.#references = references;
  }

  schemas(before: unknown, after: unknown, pointer: string): void {
    const [old, now] = [objectOf(before), objectOf(after)];
    if (old === undefined || now === undefined) {
      if (!sameValue(before, after)) this.#report(pointer, "What is allowed here has changed.");
      return;
    }
    for (const keyword of new Set([...Object.keys(old), ...Object.keys(now)])) {
      // Beside a reference everything but definitions is ignored.
      const ignored = "$ref" in old && "$ref" in now && keyword !== "$ref" && !isDefinitions(keyword);
      if (!ignored) this.#keyword(keyword, old, now, pointer);
    }
  }

  #keyword(keyword: string, before: JsonObject, after: JsonObject, pointer: string): void {
    const [old, now] = [before[keyword], after[keyword]];
    const place = pointerTo(pointer, keyword);
    switch (keyword) {
      case "definitions":
      case "$defs":
        this.#definitions(old, now, place);
        return;
      case "properties":
        this.#properties(before, after, pointer);
        return;
      case "required":
        this.#required(old, now, place);
        return;
      case "additionalProperties":
        this.schemas(old ?? true, now ?? true, place);
        return;
      case "items":
        if (isObject(old) && isObject(now)) this.schemas(old, now, place);
        else if (!sameValue(old ?? true, now ?? true)) this.#changed(keyword, old, now, place);
        return;
      case "$id":
        if (old !== now && !this.#mayRename(pointer)) {
          this.#report(place, "$id has changed, and a $ref may now mean something else.");
        }
        return;
      default:
        if (isAnnotation(keyword) || (!isKnown(keyword) && !this.#isReferredTo(keyword))) return;
        if (!sameValue(old, now, keyword)) this.#changed(keyword, old, now, place);
    }
  }

  #properties(before: JsonObject, after: JsonObject, pointer: string): void {
    const [old, now] = [mapOf(before["properties"]), mapOf(after["properties"])];
    const properties = pointerTo(pointer, "properties");
    for (const [name, schema] of Object.entries(old)) {
      const place = pointerTo(properties, name);
      if (Object.hasOwn(now, name)) this.schemas(schema, now[name], place);
      else this.#report(place, `The property ${quoted(name)} is gone.`);
    }
    for (const [name, schema] of Object.entries(now)) {
      if (Object.hasOwn(old, name)) continue;
      const obstacle = this.#obstacleToAdding(name, schema, before, after, pointer);
      if (obstacle !== undefined) {
        this.#report(pointerTo(properties, name), `The property ${quoted(name)} is new, and ${obstacle}.`);
      }
    }
  }

  #obstacleToAdding(
    name: string,
    schema: unknown,
    before: JsonObject,
    after: JsonObject,
    pointer: string,
  ): string | undefined {
    if (listOf(after["required"]).includes(name)) return "it is required";
    if (schema === false) return "it is not allowed to be present";
    const others = before["additionalProperties"];
    if (isObject(others) && Object.keys(others).length > 0 && !sameValue(others, schema)) {
      return "until now it had to match additionalProperties";
    }
    // Inside a choice a narrower branch can turn another one's answer around.
    if (this.#references.some((references) => references.mayBeChoice(pointer))) {
      return "a $ref uses this place inside a choice (anyOf, oneOf, not, if …), so its effect is not plain to see";
    }
    return undefined;
  }

  #required(before: unknown, after: unknown, place: string): void {
    const [old, now] = [listOf(before), listOf(after)];
    for (const name of now) {
      if (!old.includes(name)) this.#report(place, `The property ${quoted(name)} has become required.`);
    }
    for (const name of old) {
      if (!now.includes(name)) this.#report(place, `The property ${quoted(name)} is no longer required.`);
    }
  }

  /** A definition that is new or gone matters to nobody, unless its name could have passed to another schema. */
  #definitions(before: unknown, after: unknown, place: string): void {
    const [old, now] = [mapOf(before), mapOf(after)];
    for (const [name, schema] of Object.entries(old)) {
      const inner = pointerTo(place, name);
      if (Object.hasOwn(now, name)) this.schemas(schema, now[name], inner);
      else if (!this.#references.every(({ onlyPointers }) => onlyPointers)) {
        this.#report(
          inner,
          `The definition ${quoted(name)} is gone, and a $ref may now mean something else.`,
        );
      }
    }
  }

  #mayRename(pointer: string): boolean {
    return pointer === "" && this.#references.every(({ withinRoot }) => withinRoot);
  }

  #isReferredTo(keyword: string): boolean {
    return this.#references.some(({ all }) => all.some((reference) => reference.includes(keyword)));
  }

  #changed(keyword: string, before: unknown, after: unknown, place: string): void {
    if (before === undefined) this.#report(place, `${keyword} is new${shown(after)}.`);
    else if (after === undefined) this.#report(place, `${keyword} is gone${shown(before)}.`);
    else this.#report(place, `${keyword} has changed${scalars(before, after)}.`);
  }

  #report(pointer: string, message: string): void {
    this.changes.push({ pointer, message });
  }
}

/** A schema as an object where it says something: `true` allows all, as `{}` does. */
function objectOf(schema: unknown): JsonObject | undefined {
  if (schema === true) return {};
  return isObject(schema) ? schema : undefined;
}

function mapOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** Equal, the order left aside in the lists where it means nothing. */
function sameValue(before: unknown, after: unknown, keyword?: string): boolean {
  if (before === undefined || after === undefined) return before === after;
  if (keyword === "enum" || keyword === "type") return asSet(before) === asSet(after);
  return canonicalText(before) === canonicalText(after);
}

function asSet(values: unknown): string {
  return [values].flat().map(canonicalText).toSorted().join();
}

function scalars(before: unknown, after: unknown): string {
  const plain = [before, after].every((value) => typeof value !== "object" || Array.isArray(value));
  const [from, to] = [JSON.stringify(before), JSON.stringify(after)];
  return plain && from.length + to.length < 80 ? ` from ${from} to ${to}` : "";
}

function shown(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length < 80 ? `: ${text}` : "";
}

function quoted(name: unknown): string {
  const text = JSON.stringify(name);
  return text.length > 80 ? `${text.slice(0, 80).toWellFormed()}…` : text;
}
