import { pointerSteps, pointerTo } from "../../schema/field-path.ts";
import { isObject, type JsonObject } from "../../schema/keywords.ts";
import { isFormatted, type Source } from "../../schema/translate/source.ts";
import { type Candidate, isJsonType, membersAt, type Message, realPlace, refuse } from "./message.ts";

/** The payloads of all messages, of channels and of `components`, each once. Headers are no part of a payload. */
export function* asyncApiMessages(source: Source, document: JsonObject): Generator<Candidate> {
  const seen = new Set<string>();
  for (const [name, place] of places(source)) {
    const real = realPlace(source, place) ?? place;
    if (seen.has(real)) continue;
    seen.add(real);
    yield { name, place, read: () => messageAt(source, source.follow(place), document) };
  }
}

function* places(source: Source): Generator<readonly [name: string, place: string]> {
  for (const [, channel] of membersAt(source, "/channels")) {
    yield* membersAt(source, pointerTo(realPlace(source, channel) ?? channel, "messages"));
  }
  yield* membersAt(source, "/components/messages");
}

function messageAt(source: Source, place: string, document: JsonObject): Omit<Message, "deprecated"> {
  const message = source.at(place);
  if (!isObject(message)) return refuse(place, "it is no message");
  // What a message says itself goes before its traits, and a later trait before an earlier one.
  const traits = traitsOf(source, pointerTo(place, "traits")).toReversed();
  const said = (member: string): unknown =>
    [message, ...traits].find((one) => one[member] !== undefined)?.[member];
  const type = said("contentType") ?? document["defaultContentType"];
  if (typeof type === "string" && !isJsonType(type)) {
    refuse(place, `it is ${JSON.stringify(type)}, and payloads are JSON`);
  }
  if (message["payload"] === undefined) refuse(place, "it has no payload");
  const payload = source.follow(pointerTo(place, "payload"), "nothing");
  const name = said("name");
  return {
    name: typeof name === "string" && name !== "" ? name : (pointerSteps(place).at(-1) ?? ""),
    place,
    schema: isFormatted(source.at(payload)) ? pointerTo(payload, "schema") : payload,
  };
}

function traitsOf(source: Source, place: string): JsonObject[] {
  const list = source.at(place);
  if (!Array.isArray(list)) return [];
  return [...list.keys()]
    .map((index) => source.at(source.follow(pointerTo(place, index))))
    .filter((trait) => isObject(trait));
}
