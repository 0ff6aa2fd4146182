import { EvregError } from "../domain/error.ts";
import { isObject, type JsonObject } from "../schema/keywords.ts";
import { pointerSteps, pointerTo } from "../json/field-path.ts";
import { isAddressOf } from "./draft7.ts";
import { refuse, SourceDocument, UnsupportedMessage } from "./source.ts";

/** The events that a document declares. */
export interface Catalogue {
  readonly source: SourceDocument;
  /** `info.title`, where it is a text. */
  readonly title: string | undefined;
  readonly messages: readonly DocumentMessage[];
}

/** One event of a document. Places are JSON pointers into it. */
interface DocumentMessage {
  /** The name that the document gives it. */
  readonly name: string;
  readonly place: string;
  /** @throws `UnsupportedMessage` where it can be no action */
  readonly read: () => MessageBody;
}

interface MessageBody {
  /** The place of the payload's schema. */
  readonly schema: string;
  readonly deprecated: boolean;
}

/**
 * The webhooks of an OpenAPI 3.1 document, or the messages of an AsyncAPI 3 one.
 * @param name of the file, for a person
 * @throws `usage` for another document
 */
export function readCatalogue(document: unknown, name: string): Catalogue {
  const { openapi, swagger, asyncapi, jsonSchemaDialect, info } = isObject(document) ? document : {};
  const title = isObject(info) && typeof info["title"] === "string" ? info["title"] : undefined;
  if (/^3\.[12]\b/.test(String(openapi))) {
    if (jsonSchemaDialect !== undefined && !isAddressOf("2020-12", jsonSchemaDialect)) {
      const dialect = JSON.stringify(jsonSchemaDialect);
      throw usageError(
        `${name}: jsonSchemaDialect ${dialect} is not read; write its schemas in 2020-12, which is OpenAPI's own.`,
      );
    }
    const source = new SourceDocument(document, "2020-12");
    return { source, title, messages: openApiMessages(source) };
  }
  if (/^3\b/.test(String(asyncapi))) {
    const source = new SourceDocument(document, "draft-07");
    return { source, title, messages: asyncApiMessages(source) };
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
function asyncApiMessages(source: SourceDocument): DocumentMessage[] {
  const channels = source.membersAt("/channels").map(([, channel]) => realPlace(source, channel));
  const maps = [...channels.map((channel) => pointerTo(channel, "messages")), "/components/messages"];
  const places = maps.flatMap((map) => source.membersAt(map)).map(([, place]) => realPlace(source, place));
  return [...new Set(places)].map((place) => {
    const name = source.at(pointerTo(place, "name"));
    return {
      name: typeof name === "string" && name !== "" ? name : (pointerSteps(place).at(-1) ?? ""),
      place,
      read: () => ({ schema: payloadOf(source, source.follow(place)), deprecated: false }),
    };
  });
}

function payloadOf(source: SourceDocument, place: string): string {
  const message = source.at(place);
  if (!isObject(message)) return refuse(place, "it is no message");
  const { name, traits, contentType: type = source.at("/defaultContentType"), payload } = message;
  // Of what they can give, only these two matter here.
  if (traits !== undefined && (name === undefined || type === undefined)) {
    refuse(pointerTo(place, "traits"), "traits are not read; write name and contentType into the message");
  }
  if (typeof type === "string" && !isJsonType(type)) {
    refuse(place, `it is ${JSON.stringify(type)}, and payloads are JSON`);
  }
  return payload === undefined ? refuse(place, "it has no payload") : pointerTo(place, "payload");
}

/** The request bodies of `webhooks`. Parameters, headers and answers are no part of a payload. */
function openApiMessages(source: SourceDocument): DocumentMessage[] {
  return source
    .membersAt("/webhooks")
    .map(([name, place]) => ({ name, place, read: () => bodyOf(source, source.follow(place)) }));
}

function bodyOf(source: SourceDocument, item: string): MessageBody {
  const operations = source
    .membersAt(item)
    .map(([, place]) => place)
    .filter((place) => source.at(pointerTo(place, "requestBody")) !== undefined);
  const [operation] = operations;
  if (operation === undefined || operations.length > 1) {
    return refuse(item, `it has ${operations.length} operations with a request body, and must have one`);
  }
  const content = pointerTo(source.follow(pointerTo(operation, "requestBody")), "content");
  const types = source.membersAt(content).filter(([type]) => isJsonType(type));
  const [, type] =
    types.find(([name]) => name === "application/json") ??
    types[0] ??
    refuse(content, "its request body is never JSON");
  const schema = pointerTo(source.follow(type), "schema");
  if (source.at(schema) === undefined) refuse(type, "its request body has no schema");
  return { schema, deprecated: (source.at(operation) as JsonObject)["deprecated"] === true };
}

/** Where references from a place lead; the place itself where they lead nowhere. */
function realPlace(source: SourceDocument, place: string): string {
  try {
    return source.follow(place);
  } catch (error) {
    if (error instanceof UnsupportedMessage) return place;
    throw error;
  }
}

/** Whether it is a media type of bodies that are JSON, or may be. */
function isJsonType(type: string): boolean {
  return /^(?:\*|application)\/(?:\*|(?:[\w.-]+\+)?json)\s*(?:;|$)/i.test(type);
}
