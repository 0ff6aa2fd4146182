import { EvregError } from "../domain/error.ts";
import { isObject, type JsonObject } from "../schema/keywords.ts";
import { pointerSteps, pointerTo } from "../json/field-path.ts";
import { dialectAt, isFormatted, SourceDocument, UnsupportedSchema } from "./source.ts";

/** The events that a document declares. */
export interface Catalogue {
  readonly source: SourceDocument;
  /** `info.title`, where it is a text. */
  readonly title: string | undefined;
  readonly messages: readonly DocumentEvent[];
  readonly omitted: readonly SkippedMessage[];
}

/**
 * The webhooks of an OpenAPI 3.1 document, or the messages of an AsyncAPI 3 one.
 * @param name of the file, for a person
 * @throws `usage` for another document
 */
export function readCatalogue(document: unknown, name: string): Catalogue {
  const { source, find } = kindOf(document, name);
  const messages: DocumentEvent[] = [];
  const omitted: SkippedMessage[] = [];
  for (const { read, ...known } of find(source, document as JsonObject)) {
    try {
      messages.push({ deprecated: false, ...known, ...read() });
    } catch (error) {
      if (!(error instanceof UnsupportedSchema)) throw error;
      omitted.push({ name: known.name, place: error.pointer, message: error.message });
    }
  }
  const { info } = document as JsonObject;
  const title = isObject(info) && typeof info["title"] === "string" ? info["title"] : undefined;
  return { source, title, messages, omitted };
}

function kindOf(
  document: unknown,
  name: string,
): {
  source: SourceDocument;
  find: (source: SourceDocument, document: JsonObject) => Iterable<MessageCandidate>;
} {
  const { openapi, swagger, asyncapi, jsonSchemaDialect } = isObject(document) ? document : {};
  if (/^3\.[12]\b/.test(String(openapi))) {
    const dialect = typeof jsonSchemaDialect === "string" ? dialectAt(jsonSchemaDialect) : "2020-12";
    if (dialect !== undefined)
      return { source: new SourceDocument(document, dialect), find: openApiMessages };
    const unknownDialect = JSON.stringify(jsonSchemaDialect);
    throw usageError(
      `${name}: jsonSchemaDialect ${unknownDialect} is none that is read: JSON Schema 2020-12 and draft-07 are.`,
    );
  }
  if (/^3\b/.test(String(asyncapi))) {
    return { source: new SourceDocument(document, "draft-07"), find: asyncApiMessages };
  }
  const kind = asyncapi === undefined ? "OpenAPI" : "AsyncAPI";
  const version: unknown = asyncapi ?? openapi ?? swagger;
  const actual = typeof version === "string" ? `${kind} ${version}; convert it first` : "something else";
  throw usageError(`${name} must be OpenAPI 3.1 or AsyncAPI 3, but is ${actual}.`);
}

function usageError(message: string): EvregError {
  return new EvregError("usage", message);
}

/** The payloads of all messages, of channels and of `components`, each once. Headers are no part of a payload. */
function* asyncApiMessages(source: SourceDocument, document: JsonObject): Generator<MessageCandidate> {
  const channels = membersAt(source, "/channels").map(([, channel]) => realPlace(source, channel));
  const maps = [...channels.map((channel) => pointerTo(channel, "messages")), "/components/messages"];
  const seen = new Set<string>();
  for (const [name, place] of maps.flatMap((map) => membersAt(source, map))) {
    const real = realPlace(source, place);
    if (seen.has(real)) continue;
    seen.add(real);
    yield { name, place, read: () => messageAt(source, source.follow(place), document) };
  }
}

function messageAt(
  source: SourceDocument,
  place: string,
  document: JsonObject,
): Omit<DocumentEvent, "deprecated"> {
  const message = source.at(place);
  if (!isObject(message)) return refuse(place, "it is no message");
  // A message's own members override its traits, and a later trait the ones before.
  const list = pointerTo(place, "traits");
  const listed = source.at(list);
  const traits = (Array.isArray(listed) ? [...listed.keys()] : [])
    .map((index) => source.at(source.follow(pointerTo(list, index))))
    .filter((trait) => isObject(trait))
    .toReversed();
  const valueOf = (member: string): unknown =>
    [message, ...traits].find((one) => one[member] !== undefined)?.[member];
  const type = valueOf("contentType") ?? document["defaultContentType"];
  if (typeof type === "string" && !isJsonType(type)) {
    refuse(place, `it is ${JSON.stringify(type)}, and payloads are JSON`);
  }
  if (message["payload"] === undefined) refuse(place, "it has no payload");
  const payload = source.follow(pointerTo(place, "payload"), "nothing");
  const name = valueOf("name");
  return {
    name: typeof name === "string" && name !== "" ? name : (pointerSteps(place).at(-1) ?? ""),
    place,
    schema: isFormatted(source.at(payload)) ? pointerTo(payload, "schema") : payload,
  };
}

const METHODS = ["post", "put", "patch", "delete", "get", "query", "head", "options", "trace"];

/** The request bodies of `webhooks`. Parameters, headers and answers are no part of a payload. */
function* openApiMessages(source: SourceDocument): Generator<MessageCandidate> {
  for (const [name, place] of membersAt(source, "/webhooks")) {
    const item = realPlace(source, place);
    const operations = METHODS.map((method) => pointerTo(item, method)).filter((at) =>
      isObject(source.at(at)),
    );
    for (const operation of operations) yield { name, place, read: () => bodyOf(source, operation) };
    if (operations.length > 0) continue;
    yield { name, place, read: () => refuse(source.follow(place), "it has no operation") };
  }
}

function bodyOf(source: SourceDocument, operation: string): Pick<DocumentEvent, "schema" | "deprecated"> {
  const { requestBody, deprecated } = source.at(operation) as JsonObject;
  if (requestBody === undefined) refuse(operation, "it has no request body");
  const content = pointerTo(source.follow(pointerTo(operation, "requestBody")), "content");
  const types = membersAt(source, content).filter(([type]) => isJsonType(type));
  const [, type] =
    types.find(([name]) => name === "application/json") ??
    types[0] ??
    refuse(content, "its request body is never JSON");
  const schema = pointerTo(source.follow(type), "schema");
  if (source.at(schema) === undefined) refuse(type, "its request body has no schema");
  return { schema, deprecated: deprecated === true };
}

/** One event of a document. Places are JSON pointers into it. */
export interface DocumentEvent {
  /** The name that the document gives it. */
  readonly name: string;
  /** Where it stands, and where its payload's schema does. */
  readonly place: string;
  readonly schema: string;
  readonly deprecated: boolean;
}

/** What there is no action for, and why. */
export interface SkippedMessage {
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

/** Where a message may be. */
interface MessageCandidate {
  readonly name: string;
  readonly place: string;
  /** @throws `UnsupportedSchema` where there is none that can be an action */
  readonly read: () => Pick<DocumentEvent, "schema"> & Partial<DocumentEvent>;
}

/** The members of a map at a place, each with its own place; none where there is no map. */
function membersAt(source: SourceDocument, place: string): (readonly [name: string, place: string])[] {
  const map = source.at(place);
  return isObject(map) ? Object.keys(map).map((name) => [name, pointerTo(place, name)] as const) : [];
}

/** Where references from a place lead; the place itself where `Source.follow` would refuse them. */
function realPlace(source: SourceDocument, place: string): string {
  try {
    return source.follow(place);
  } catch (error) {
    if (error instanceof UnsupportedSchema) return place;
    throw error;
  }
}

/** Whether it is a media type of bodies that are JSON, or may be. */
function isJsonType(type: string): boolean {
  return /^(?:\*|application)\/(?:\*|(?:[\w.-]+\+)?json)\s*(?:;|$)/i.test(type);
}

export function refuse(pointer: string, message: string): never {
  throw new UnsupportedSchema(pointer, message);
}
