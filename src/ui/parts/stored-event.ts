import { useState } from "preact/hooks";
import type { Event } from "../../domain/event.ts";
import { ApiError } from "../api/api-error.ts";
import { askJson, askText, type Envelope, withQuery } from "../api/request.ts";
import { type AnyMeta, type Resource, useResource } from "../api/resource.ts";
import { memberText } from "./json-tokens.ts";

/** An event without its payload. */
export type EventHead = Required<Omit<Event, "payload" | "deliveries">>;

/** Larger payloads are read when somebody asks for them. */
const UNASKED_BYTES = 64 * 1_024;

const eventPath = (id: string | number): string => `/v1/events/${encodeURIComponent(id)}`;

/** Reads what is known of an event without its payload, for `useResource`. @param path that of the event */
async function readHead(path: string, signal: AbortSignal): Promise<Envelope<EventHead>> {
  const id = Number(path.split("/").at(-1));
  const list = withQuery("/v1/events", { after: id + 1, limit: 1, payloads: false });
  const found = Number.isSafeInteger(id + 1)
    ? (await askJson<readonly EventHead[]>(list, { signal })).data[0]
    : undefined;
  if (found?.rowid !== id) throw new ApiError(404, "There is no such event, or no more.");
  return { data: found };
}

/** Reads a payload byte for byte as it is stored, for `useResource`. @param path that of its event */
async function readPayload(path: string, signal?: AbortSignal): Promise<Envelope<string>> {
  const data = memberText(await askText(path, signal === undefined ? {} : { signal }), "data") ?? "{}";
  return { data: memberText(data, "payload") ?? "null" };
}

/** An event, and its payload as soon as it is small or was asked for. */
export function useEvent(id: string | number): {
  readonly head: Resource<EventHead, AnyMeta>;
  readonly payload: Resource<string, AnyMeta>;
  /** Whether the payload is read only when `ask` was called. */
  readonly isLarge: boolean;
  readonly ask: (() => void) | undefined;
} {
  const [isAsked, setAsked] = useState(false);
  const path = eventPath(id);
  const head = useResource<EventHead>(path, { read: readHead });
  const isLarge = (head.answer?.data.payload_bytes ?? 0) > UNASKED_BYTES;
  const isRead = head.answer !== undefined && (isAsked || !isLarge);
  const payload = useResource<string>(isRead ? path : undefined, { read: readPayload });
  return { head, payload, isLarge, ask: isLarge && !isAsked ? () => setAsked(true) : undefined };
}

/** The payload of an event, byte for byte as it is stored. @throws ApiError */
export async function payloadOf(id: number): Promise<string> {
  return (await readPayload(eventPath(id))).data;
}
