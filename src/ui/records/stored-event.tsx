import { useState } from "preact/hooks";
import type { Event } from "../../domain/event.ts";
import { askJson, askText, type Envelope, withQuery, ApiError } from "../api/request.ts";
import { type AnyMeta, type Resource, useResource } from "../api/resource.ts";
import { Button } from "../parts/button.tsx";
import { memberText } from "../parts/json-tokens.ts";
import { JsonView } from "../parts/json-view.tsx";
import { CodeBox } from "../parts/layout.tsx";
import { Waiting } from "../parts/states.tsx";
import { sizeText } from "../parts/texts.ts";

/** An event without its payload. */
export type EventHead = Required<Omit<Event, "payload" | "deliveries">>;

/** Larger payloads are read when somebody asks for them. */
const UNASKED_BYTES = 64 * 1_024;

const eventPath = (id: string | number): string => `/v1/events/${encodeURIComponent(id)}`;

/** Reads what is known of an event without its payload, for `useResource`. @param path that of the event */
async function readHead(path: string, signal: AbortSignal): Promise<Envelope<EventHead>> {
  const id = Number(path.split("/").at(-1));
  const list = withQuery("/v1/events", { after: id + 1, limit: 1, payloads: false });
  const event = Number.isSafeInteger(id + 1)
    ? (await askJson<readonly EventHead[]>(list, { signal })).data[0]
    : undefined;
  if (event?.rowid !== id) throw new ApiError(404, "There is no such event, or no more.");
  return { data: event };
}

/** Reads a payload byte for byte as it is stored, for `useResource`. @param path that of its event */
async function readPayload(path: string, signal?: AbortSignal): Promise<Envelope<string>> {
  const data = memberText(await askText(path, signal === undefined ? {} : { signal }), "data") ?? "{}";
  return { data: memberText(data, "payload") ?? "null" };
}

interface StoredEvent {
  readonly head: Resource<EventHead, AnyMeta>;
  readonly payload: Resource<string, AnyMeta>;
  /** Whether the payload is read only when `ask` was called. */
  readonly isLarge: boolean;
  readonly ask: (() => void) | undefined;
}

/** An event, and its payload as soon as it is small or was asked for. */
export function useEvent(id: string | number): StoredEvent {
  const [isAsked, setAsked] = useState(false);
  const path = eventPath(id);
  const head = useResource<EventHead>(path, { read: readHead, isFixed: true });
  const isLarge = (head.answer?.data.payload_bytes ?? 0) > UNASKED_BYTES;
  const isRead = head.answer !== undefined && (isAsked || !isLarge);
  const payload = useResource<string>(isRead ? path : undefined, { read: readPayload, isFixed: true });
  return { head, payload, isLarge, ask: isLarge && !isAsked ? () => setAsked(true) : undefined };
}

/**
 * The payload of an event, or what was made with it. A large one is read only when somebody asks for it.
 * @param props.what what it is: "the payload"
 * @param props.text `undefined` until the payload is read
 */
export function PayloadView(props: {
  readonly title: string;
  readonly what: string;
  readonly of: StoredEvent;
  readonly text: string | undefined;
}) {
  const { title, what, of, text } = props;
  const { head, payload, isLarge, ask } = of;
  if (text !== undefined) return <JsonView title={title} what={what} text={text} asked={isLarge} />;
  if (ask === undefined) return <Waiting of={head.error === undefined ? payload : head} />;
  return (
    <CodeBox title={title} note={sizeText(head.answer?.data.payload_bytes ?? 0)}>
      <div class="empty">
        <p>It is large, so it has not been loaded.</p>
        <Button run={ask} label="Load and show it" />
      </div>
    </CodeBox>
  );
}

/** The payload of an event, byte for byte as it is stored. @throws ApiError */
export async function payloadOf(id: number): Promise<string> {
  return (await readPayload(eventPath(id))).data;
}
