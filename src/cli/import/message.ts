import { pointerTo } from "../../schema/field-path.ts";
import { isObject, type JsonObject } from "../../schema/keywords.ts";
import { type Source, Untranslatable } from "../../schema/translate/source.ts";

/** What a document tells of one event. Places are JSON pointers into it. */
export interface Message {
  /** As the document has it. */
  readonly name: string;
  /** Where it stands, and where its payload's schema does. */
  readonly place: string;
  readonly schema: string;
  readonly deprecated: boolean;
}

/** What there is no action for, and why. */
export interface Omitted {
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

/** Where a message may be. */
export interface Candidate {
  readonly name: string;
  readonly place: string;
  /** @throws `Untranslatable` where there is none that can be an action */
  readonly read: () => Pick<Message, "schema"> & Partial<Message>;
}

/** Finds what may be a message in a document of one kind. */
export type Finder = (source: Source, document: JsonObject) => Iterable<Candidate>;

/** The members of a map at a place, each with its own place; none where there is no map. */
export function* membersAt(source: Source, place: string): Generator<readonly [name: string, place: string]> {
  const map = source.at(place);
  if (!isObject(map)) return;
  for (const name of Object.keys(map)) yield [name, pointerTo(place, name)];
}

/** Where references from a place lead, if anywhere; `Source.follow` tells why not. */
export function realPlace(source: Source, place: string): string | undefined {
  try {
    return source.follow(place);
  } catch (error) {
    if (error instanceof Untranslatable) return undefined;
    throw error;
  }
}

/** Whether it is a media type of bodies that are JSON, or may be. */
export function isJsonType(type: string): boolean {
  return /^(?:\*|application)\/(?:\*|(?:[\w.-]+\+)?json)\s*(?:;|$)/i.test(type);
}

export function refuse(pointer: string, message: string): never {
  throw new Untranslatable(pointer, message);
}
