import { isObject } from "../schema/keywords.ts";
import { childOf, pointerSteps, pointerTo } from "../json/field-path.ts";

/** Why something cannot be translated: a place in the source, and a sentence. */
export class UnsupportedSchema extends Error {
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

const MAX_HOPS = 100;

/** A document that holds schemas among other things, with what its references lead to. Nothing outside of it is read. */
export class SourceDocument {
  readonly #document: unknown;
  readonly #dialect: Dialect;

  /** @param dialect of schemas that name none */
  constructor(document: unknown, dialect: Dialect) {
    this.#document = document;
    this.#dialect = dialect;
  }

  at(pointer: string): unknown {
    return pointerSteps(pointer).reduce(childOf, this.#document);
  }

  /** Where what stands here really stands. @param beside what a `$ref` may have beside it to be followed */
  follow(pointer: string, beside: "anything" | "nothing" = "anything"): string {
    let place = pointer;
    for (let hops = 0; hops < MAX_HOPS; hops++) {
      const value = this.at(place);
      if (!isObject(value) || typeof value["$ref"] !== "string") return place;
      if (beside === "nothing" && Object.keys(value).length > 1) return place;
      place = this.target(value["$ref"], place);
    }
    throw new UnsupportedSchema(pointer, "$ref leads back to itself");
  }

  /**
   * The place a reference leads to.
   * @param from where the object with the `$ref` stands
   */
  target(ref: string, from: string): string {
    const refuse = (message: string): UnsupportedSchema =>
      new UnsupportedSchema(pointerTo(from, "$ref"), `$ref ${JSON.stringify(ref.slice(0, 200))} ${message}`);
    if (!ref.startsWith("#")) {
      throw refuse(
        "leads out of this document, and nothing else is read; bundle the documents into one first",
      );
    }
    const fragment = decoded(ref.slice(1));
    if (fragment !== "" && !fragment.startsWith("/"))
      throw refuse("leads to a name; only pointers are followed");
    const place = this.#readingAt(from).resource + fragment;
    if (place === "") throw refuse("leads to the document as a whole, which is no schema");
    const value = this.at(place);
    if (value === undefined) throw refuse("leads to a place that is not there");
    return isFormatted(value) ? pointerTo(place, "schema") : place;
  }

  /** @throws `UnsupportedSchema` for a dialect that is not known */
  dialectAt(pointer: string): Dialect {
    return this.#readingAt(pointer).dialect;
  }

  /** How what stands at a place is to be read, and where the schema begins that its references count from. */
  #readingAt(pointer: string): { readonly dialect: Dialect; readonly resource: string } {
    let [dialect, resource, place] = [this.#dialect, "", ""];
    let value: unknown = this.#document;
    for (const step of pointerSteps(pointer)) {
      value = childOf(value, step);
      place = pointerTo(place, step);
      if (!isObject(value)) continue;
      const { $schema, $id, schemaFormat } = value;
      if (isFormatted(value)) {
        const format = String(schemaFormat);
        dialect = dialectOfFormat(format) ?? refuseDialect(place, "schemaFormat", format);
      }
      if (typeof $schema === "string")
        dialect = dialectAt($schema) ?? refuseDialect(place, "$schema", $schema);
      // Draft-07 also names places by an $id that is a fragment only.
      if (typeof $id === "string" && !$id.startsWith("#")) resource = place;
    }
    return { dialect, resource };
  }
}

/** A schema of AsyncAPI with its format beside it. */
export function isFormatted(value: unknown): boolean {
  return isObject(value) && typeof value["schemaFormat"] === "string" && Object.hasOwn(value, "schema");
}

function refuseDialect(pointer: string, member: string, named: string): never {
  throw new UnsupportedSchema(
    pointerTo(pointer, member),
    `${member} ${JSON.stringify(named.slice(0, 200))} is none that is read: JSON Schema 2020-12 and draft-07 are`,
  );
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

/** The dialects of JSON Schema that can be translated. */
export type Dialect = "draft-07" | "2020-12";

const BY_ADDRESS: readonly (readonly [RegExp, Dialect])[] = [
  [/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/, "draft-07"],
  [/^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/, "2020-12"],
  // OpenAPI's own is 2020-12 with keywords that check nothing.
  [/^https:\/\/spec\.openapis\.org\/oas\/3\.[12]\/dialect\/[\w.-]+$/, "2020-12"],
];

const BY_FORMAT: readonly (readonly [RegExp, Dialect])[] = [
  [/^application\/vnd\.aai\.asyncapi(?:\+(?:json|yaml))?(?:;\s*version=3\.\d+\.\d+)?$/, "draft-07"],
  [/^application\/schema\+(?:json|yaml)(?:;\s*version=draft-07)?$/, "draft-07"],
  [/^application\/schema\+(?:json|yaml);\s*version=(?:draft\/)?2020-12$/, "2020-12"],
];

/** The dialect of a `$schema` or `jsonSchemaDialect`. */
export function dialectAt(address: string): Dialect | undefined {
  return BY_ADDRESS.find(([pattern]) => pattern.test(address))?.[1];
}

/** The dialect of AsyncAPI's `schemaFormat`. */
function dialectOfFormat(schemaFormat: string): Dialect | undefined {
  return BY_FORMAT.find(([pattern]) => pattern.test(schemaFormat))?.[1];
}
