import { isObject } from "../schema/keywords.ts";
import { childOf, pointerSteps, pointerTo } from "../json/field-path.ts";

/** Why there is no action for a message: a place in the document, and a sentence. */
export class UnsupportedMessage extends Error {
  readonly pointer: string;

  constructor(pointer: string, message: string) {
    super(message);
    this.pointer = pointer;
  }
}

export function refuse(pointer: string, message: string): never {
  throw new UnsupportedMessage(pointer, message);
}

/** The dialects of JSON Schema that can be translated. */
export type Dialect = "draft-07" | "2020-12";

const MAX_HOPS = 100;

/** Formats of AsyncAPI whose schemas are those of draft-07. */
const DRAFT_07_FORMAT =
  /^application\/(?:vnd\.aai\.asyncapi\b|schema\+(?:json|yaml)(?:;\s*version=draft-07)?$)/;

/** A document that holds schemas among other things, with what its references lead to. Nothing outside of it is read. */
export class SourceDocument {
  /** That of all its schemas. */
  readonly dialect: Dialect;
  readonly #document: unknown;

  constructor(document: unknown, dialect: Dialect) {
    this.dialect = dialect;
    this.#document = document;
  }

  at(pointer: string): unknown {
    return pointerSteps(pointer).reduce(childOf, this.#document);
  }

  /** The members of a map at a place, each with its own place; none where there is no map. */
  membersAt(place: string): (readonly [name: string, place: string])[] {
    const map = this.at(place);
    return isObject(map) ? Object.keys(map).map((name) => [name, pointerTo(place, name)] as const) : [];
  }

  /** Where what stands here really stands. @param beside what a `$ref` may have beside it to be followed */
  follow(pointer: string, beside: "anything" | "nothing" = "anything"): string {
    let place = pointer;
    for (let hops = 0; hops < MAX_HOPS; hops++) {
      const value = this.at(place);
      if (!isObject(value)) return place;
      const { $ref: ref, schemaFormat: format, schema } = value;
      if (typeof format === "string" && schema !== undefined) {
        if (!DRAFT_07_FORMAT.test(format)) refuseFormat(pointerTo(place, "schemaFormat"), format);
        place = pointerTo(place, "schema");
      } else {
        const isFollowed = beside === "anything" || Object.keys(value).length === 1;
        if (typeof ref !== "string" || !isFollowed) return place;
        place = this.target(ref, place);
      }
    }
    return refuse(pointer, "$ref leads back to itself");
  }

  /**
   * The place a reference leads to. It counts from the document as a whole, whatever `$id` is around it.
   * @param from where the object with the `$ref` stands
   */
  target(ref: string, from: string): string {
    const place = decoded(ref.slice(1));
    if (ref.startsWith("#/") && this.at(place) !== undefined) return place;
    const why = ref.startsWith("#/")
      ? "leads to a place that is not there"
      : "is no pointer into this document (#/…), and nothing else is read; bundle what it needs into the document first";
    return refuse(pointerTo(from, "$ref"), `$ref ${JSON.stringify(ref.slice(0, 200))} ${why}`);
  }
}

function refuseFormat(pointer: string, format: string): never {
  const shown = JSON.stringify(format.slice(0, 200));
  return refuse(pointer, `schemaFormat ${shown} is not read; write the schema in JSON Schema draft-07`);
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}
