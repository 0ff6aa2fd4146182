import { unknownKeyword } from "../schema/check.ts";
import { isAnnotation, isKnown, isObject, type JsonObject, schemasIn } from "../schema/keywords.ts";
import { type FieldPath, pointerSteps, pointerTo } from "../json/field-path.ts";
import { type Dialect, refuse, type SourceDocument } from "./source.ts";

/** What was changed or left out, with its place in the source. */
export interface Note {
  readonly pointer: string;
  readonly message: string;
}

export interface Translated {
  readonly schemata: unknown;
  readonly notes: readonly Note[];
  /** The place in the source of a path of `schemata`. */
  readonly sourceOf: (path: FieldPath) => string;
}

const ADDRESSES: Readonly<Record<Dialect, RegExp>> = {
  "draft-07": /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/,
  // OpenAPI's own is 2020-12 with keywords that check nothing.
  "2020-12":
    /^https?:\/\/(?:json-schema\.org\/draft\/2020-12\/schema#?|spec\.openapis\.org\/oas\/3\.[12]\/dialect\/[\w.-]+)$/,
};

/** Whether a `$schema` or `jsonSchemaDialect` is that of a dialect. */
export function isAddressOf(dialect: Dialect, address: unknown): boolean {
  return ADDRESSES[dialect].test(String(address));
}

/** Keywords of 2020-12 that check what draft-07 cannot say, or says in another way, and what to write. */
const NEWER: ReadonlyMap<string, string> = new Map([
  ["$dynamicRef", "use $ref"],
  ["dependentRequired", "write if and then, with required in both"],
  ["dependentSchemas", "write if and then, with required in the if"],
  ["maxContains", "leave it out"],
  ["minContains", "leave it out"],
  ["prefixItems", "describe every item by items"],
  ["unevaluatedItems", "describe every item by items"],
  ["unevaluatedProperties", "write additionalProperties, with all members in properties"],
]);

/** What names a schema or keeps others. What is referred to becomes a definition of the whole. */
const LEFT_BEHIND = new Set(["$id", "$defs", "definitions"]);

/**
 * A schema of draft-07 that accepts what one in a larger document accepts. What it refers to becomes `definitions`.
 * @throws `UnsupportedMessage` for what would not mean the same
 */
export function toDraft7(source: SourceDocument, pointer: string): Translated {
  return new Translation(source, pointer).run();
}

class Translation {
  readonly #source: SourceDocument;
  readonly #root: string;
  readonly #notes: Note[] = [];
  /** Definitions by the place in the source, and the other way round. */
  readonly #names = new Map<string, string>();
  readonly #places = new Map<string, string>();

  constructor(source: SourceDocument, pointer: string) {
    this.#source = source;
    this.#root = source.follow(pointer, "nothing");
  }

  run(): Translated {
    const schemata = this.#schema(this.#root);
    // A definition may add others to the map while it is iterated.
    const definitions: [string, unknown][] = [];
    for (const [name, place] of this.#places) definitions.push([name, this.#schema(place)]);
    if (isObject(schemata) && definitions.length > 0) {
      schemata["definitions"] = Object.fromEntries(definitions);
    }
    return { schemata, notes: this.#notes, sourceOf: (path) => this.#sourceOf(path) };
  }

  #sourceOf(path: FieldPath): string {
    const [keyword, name, ...inside] = path;
    const definition = keyword === "definitions" ? this.#places.get(String(name)) : undefined;
    if (definition === undefined) return path.reduce<string>(pointerTo, this.#root);
    return inside.reduce<string>(pointerTo, definition);
  }

  #schema(pointer: string): unknown {
    const schema = this.#source.at(pointer);
    // What is no schema stays as it is, and is refused when the whole is checked.
    if (!isObject(schema)) return schema;
    const { dialect } = this.#source;
    const entries: [string, unknown][] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      const place = pointerTo(pointer, keyword);
      const leaveOut = (message: string) => this.#notes.push({ pointer: place, message });
      const instead = dialect === "2020-12" ? NEWER.get(keyword) : undefined;
      if (instead !== undefined) refuse(place, `${keyword} is not translated; ${instead}`);
      if (keyword === "$schema") checkDialect(dialect, value, place);
      else if (LEFT_BEHIND.has(keyword)) continue;
      else if (keyword === "$ref" && typeof value === "string") {
        entries.push([keyword, this.#reference(value, pointer)]);
      } else if (keyword === "example" && schema["examples"] === undefined) {
        entries.push(["examples", [value]]);
      } else if (!isKnown(keyword) && !keyword.startsWith("x-")) {
        leaveOut(`left out: ${unknownKeyword(keyword)}`);
      } else if (value === null && (keyword === "description" || keyword === "title")) {
        // An empty `description:` of YAML, which draft-07 refuses.
        leaveOut(`left out: ${keyword} is empty`);
      } else entries.push([keyword, this.#inside(keyword, value, place)]);
    }
    const translated = Object.fromEntries(entries);
    return dialect === "2020-12" ? referenceInside(translated) : translated;
  }

  /** The value of a keyword, with the schemas in it translated. */
  #inside(keyword: string, value: unknown, pointer: string): unknown {
    const holds = schemasIn(keyword);
    if (holds === undefined) return value;
    if (Array.isArray(value)) return value.map((_, index) => this.#schema(pointerTo(pointer, index)));
    if (holds !== "map" || !isObject(value)) return this.#schema(pointer);
    const members = this.#source.membersAt(pointer);
    return Object.fromEntries(members.map(([name, place]) => [name, this.#schema(place)]));
  }

  #reference(ref: string, from: string): string {
    const place = this.#source.follow(this.#source.target(ref, from), "nothing");
    if (place === this.#root) return "#";
    const name = this.#names.get(place) ?? this.#freeName(pointerSteps(place).at(-1) ?? "");
    this.#names.set(place, name);
    this.#places.set(name, place);
    return `#/definitions/${name}`;
  }

  /** A name that needs no escaping in a reference. */
  #freeName(wanted: string): string {
    const stem = wanted.replaceAll(/[^A-Za-z0-9._-]+/g, "_") || "schema";
    let name = stem;
    for (let next = 2; this.#places.has(name); next++) name = `${stem}_${next}`;
    return name;
  }
}

function checkDialect(dialect: Dialect, address: unknown, pointer: string): void {
  if (isAddressOf(dialect, address)) return;
  refuse(pointer, `the schemas of this document are read as ${dialect}; write this one so, without $schema`);
}

/** In draft-07 nothing beside a `$ref` counts. */
function referenceInside(schema: JsonObject): JsonObject {
  const { $ref, ...others } = schema;
  if ($ref === undefined || Object.keys(others).every((keyword) => isAnnotation(keyword))) return schema;
  const all = Array.isArray(others["allOf"]) ? (others["allOf"] as unknown[]) : [];
  // Behind the others, so that their places stay those of the source.
  return { ...others, allOf: [...all, { $ref }] };
}
