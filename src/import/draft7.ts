import { isAnnotation, isObject, type JsonObject } from "../schema/keywords.ts";
import { SCHEMA_LIMITS } from "../schema/limits.ts";
import { pointerSteps, pointerTo } from "../json/field-path.ts";
import { type Dialect, type SourceDocument, UnsupportedSchema } from "./source.ts";
import { holds, isKept, isEmptyText, reasonDropped, STRUCTURE } from "./vocabulary.ts";

/** What was changed or left out, with its place in the source. */
export interface Note {
  readonly pointer: string;
  readonly message: string;
}

export interface Translated {
  readonly schemata: unknown;
  readonly notes: readonly Note[];
  /** The place in the source of a path of `schemata`, or of the schema it is in. */
  readonly sourceOf: (path: readonly (string | number)[]) => string;
}

/**
 * A schema of draft-07 that accepts what one in a larger document accepts. What it refers to becomes `definitions`.
 * @throws `UnsupportedSchema` for what would not mean the same
 */
export function toDraft7(source: SourceDocument, pointer: string): Translated {
  return new Translation(source).run(pointer);
}

type Members = Map<string, unknown>;

/** Keywords whose schemas may name members of the same object. */
const NAMING_MEMBERS = "$ref allOf anyOf oneOf if then else dependentSchemas dependencies".split(" ");

/** One keyword of draft-07 stands for all of them. */
const DEPENDENCIES = ["dependencies", "dependentRequired", "dependentSchemas"];

/** What draft-07 cannot say, or only in a long way round. */
const UNTRANSLATED: ReadonlyMap<string, string> = new Map([
  ["unevaluatedItems", "; beside prefixItems alone, write items instead"],
  ["minContains", ""],
  ["maxContains", ""],
]);

class Translation {
  readonly #source: SourceDocument;
  readonly #notes: Note[] = [];
  readonly #places = new WeakMap<object, string>();
  /** Names of definitions, by the place in the source. */
  readonly #names = new Map<string, string>();
  #root = "";
  #count = 0;

  constructor(source: SourceDocument) {
    this.#source = source;
  }

  run(pointer: string): Translated {
    this.#root = this.#source.follow(pointer, "nothing");
    const root = this.#schema(this.#root);
    // A definition may add others to the map while it is iterated.
    const definitions: [string, unknown][] = [];
    for (const [place, name] of this.#names) definitions.push([name, this.#schema(place)]);
    if (isObject(root) && definitions.length > 0) root["definitions"] = Object.fromEntries(definitions);
    return {
      schemata: root,
      notes: this.#notes,
      sourceOf: (path) => {
        let [value, place, from]: [unknown, string, number] = [root, this.#root, 0];
        for (const [index, step] of path.entries()) {
          value = (value as Record<string, unknown> | undefined)?.[String(step)];
          const known = typeof value === "object" && value !== null ? this.#places.get(value) : undefined;
          if (known !== undefined) [place, from] = [known, index + 1];
        }
        return path.slice(from).reduce<string>(pointerTo, place);
      },
    };
  }

  #schema(pointer: string): unknown {
    const schema = this.#source.at(pointer);
    if (typeof schema === "boolean") return schema;
    if (!isObject(schema)) throw new UnsupportedSchema(pointer, "must be a schema: an object, true or false");
    this.#count += 1;
    if (this.#count > SCHEMA_LIMITS.subschemas) {
      const max = SCHEMA_LIMITS.subschemas.toLocaleString("en");
      throw new UnsupportedSchema(this.#root, `needs more than ${max} schemas, with all that it refers to`);
    }
    const translated = this.#object(schema, pointer);
    this.#places.set(translated, pointer);
    return translated;
  }

  #object(schema: JsonObject, pointer: string): JsonObject {
    const dialect = this.#source.dialectAt(pointer);
    const hasReference = typeof schema["$ref"] === "string";
    const entries: [string, unknown][] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      const place = pointerTo(pointer, keyword);
      const note = (message: string) => this.#notes.push({ pointer: place, message });
      if (STRUCTURE.has(keyword)) continue;
      if (keyword === "$ref" && hasReference) {
        entries.push([keyword, this.#reference(String(value), pointer)]);
      } else if (keyword === "$dynamicRef" && dialect === "2020-12") {
        throw new UnsupportedSchema(place, "$dynamicRef has no counterpart in draft-07; use $ref");
      } else if (hasReference && dialect === "draft-07" && !isAnnotation(keyword)) {
        note(`left out: draft-07 ignores ${keyword} beside $ref`);
      } else if (keyword === "example" && schema["examples"] === undefined) {
        entries.push(["examples", [value]]);
      } else if (isEmptyText(keyword, value)) {
        note(`left out: ${keyword} is empty`);
      } else if (holds(keyword, dialect) !== undefined) {
        entries.push([keyword, this.#inside(keyword, value, place, dialect)]);
      } else if (isKept(keyword, dialect)) entries.push([keyword, value]);
      else note(reasonDropped(keyword));
    }
    return dialect === "draft-07" ? Object.fromEntries(entries) : this.#downgrade(new Map(entries), pointer);
  }

  /** The schemas inside a keyword. The meta-schema of draft-07 refuses anything else that is there. */
  #inside(keyword: string, value: unknown, pointer: string, dialect: Dialect): unknown {
    const inside = holds(keyword, dialect);
    if (Array.isArray(value) && inside === "schema") {
      const hint = keyword === "items" ? "; in 2020-12 a list of schemas is prefixItems" : "";
      throw new UnsupportedSchema(pointer, `${keyword} must be one schema${hint}`);
    }
    if (Array.isArray(value)) return value.map((_, index) => this.#schema(pointerTo(pointer, index)));
    if (inside !== "map") return this.#schema(pointer);
    if (!isObject(value)) return value;
    const entries = Object.entries(value).map(([name, inner]): [string, unknown] => {
      const isList = keyword === "dependencies" && Array.isArray(inner);
      return [name, isList ? inner : this.#schema(pointerTo(pointer, name))];
    });
    return Object.fromEntries(entries);
  }

  /**
   * A schema of 2020-12 in keywords of draft-07. The schemas inside are translated already.
   *
   * | 2020-12 | draft-07 |
   * | --- | --- |
   * | `prefixItems` and `items` | `items` and `additionalItems` |
   * | `dependentRequired` or `dependentSchemas` | `dependencies` |
   * | `unevaluatedProperties`, where nothing beside it names members too | `additionalProperties` |
   * | keywords beside `$ref` | `allOf` with the `$ref` |
   */
  #downgrade(members: Members, pointer: string): JsonObject {
    const refuse = (keyword: string, why: string): never => {
      throw new UnsupportedSchema(pointerTo(pointer, keyword), `${keyword} is not translated${why}`);
    };
    for (const [keyword, why] of UNTRANSLATED) if (members.has(keyword)) refuse(keyword, why);
    const rest = members.get("unevaluatedProperties");
    members.delete("unevaluatedProperties");
    if (rest !== undefined && rest !== true && !members.has("additionalProperties")) {
      const other = NAMING_MEMBERS.find((keyword) => members.has(keyword));
      const advice = "write additionalProperties, with all members in properties";
      if (other !== undefined) refuse("unevaluatedProperties", ` beside ${other}; ${advice}`);
      members.set("additionalProperties", rest);
    }
    const [dependencies, second] = DEPENDENCIES.filter((keyword) => members.has(keyword));
    if (second !== undefined) refuse(second, ` beside ${dependencies}`);
    const renamed = [...members].map(([keyword, value]): [string, unknown] => {
      if (keyword === dependencies) return ["dependencies", value];
      if (!members.has("prefixItems")) return [keyword, value];
      if (keyword === "prefixItems") return ["items", value];
      return [keyword === "items" ? "additionalItems" : keyword, value];
    });
    return referenceInside(Object.fromEntries(renamed));
  }

  #reference(ref: string, from: string): string {
    const place = this.#source.follow(this.#source.target(ref, from), "nothing");
    if (place === this.#root) return "#";
    let name = this.#names.get(place);
    if (name === undefined) {
      name = freeName(pointerSteps(place).at(-1) ?? "", new Set(this.#names.values()));
      this.#names.set(place, name);
    }
    return `#/definitions/${name}`;
  }
}

/** A name that needs no escaping in a reference. */
function freeName(wanted: string, taken: ReadonlySet<string>): string {
  const stem = wanted.replaceAll(/[^A-Za-z0-9._-]+/g, "_") || "schema";
  let name = stem;
  for (let next = 2; taken.has(name); next++) name = `${stem}_${next}`;
  return name;
}

/** In draft-07 nothing beside a `$ref` counts. */
function referenceInside(schema: JsonObject): JsonObject {
  const { $ref, ...others } = schema;
  if ($ref === undefined || Object.keys(others).every((keyword) => isAnnotation(keyword))) return schema;
  const all = Array.isArray(others["allOf"]) ? (others["allOf"] as unknown[]) : [];
  return { ...others, allOf: [{ $ref }, ...all] };
}
