import { pointerTo } from "../../schema/field-path.ts";
import { isObject, type JsonObject } from "../../schema/keywords.ts";
import type { Source } from "../../schema/translate/source.ts";
import { type Candidate, isJsonType, membersAt, type Message, realPlace, refuse } from "./message.ts";

const METHODS = ["post", "put", "patch", "delete", "get", "query", "head", "options", "trace"];

/** The request bodies of `webhooks`. Parameters, headers and answers are no part of a payload. */
export function* openApiMessages(source: Source): Generator<Candidate> {
  for (const [name, place] of membersAt(source, "/webhooks")) {
    const item = realPlace(source, place) ?? place;
    const operations = METHODS.map((method) => pointerTo(item, method)).filter((at) =>
      isObject(source.at(at)),
    );
    for (const operation of operations) yield { name, place, read: () => bodyOf(source, operation) };
    if (operations.length > 0) continue;
    yield { name, place, read: () => refuse(source.follow(place), "it has no operation") };
  }
}

function bodyOf(source: Source, operation: string): Pick<Message, "schema" | "deprecated"> {
  const { requestBody, deprecated } = source.at(operation) as JsonObject;
  if (requestBody === undefined) refuse(operation, "it has no request body");
  const content = pointerTo(source.follow(pointerTo(operation, "requestBody")), "content");
  const types = [...membersAt(source, content)].filter(([type]) => isJsonType(type));
  const [, type] =
    types.find(([name]) => name === "application/json") ??
    types[0] ??
    refuse(content, "its request body is never JSON");
  const schema = pointerTo(source.follow(type), "schema");
  if (source.at(schema) === undefined) refuse(type, "its request body has no schema");
  return { schema, deprecated: deprecated === true };
}
