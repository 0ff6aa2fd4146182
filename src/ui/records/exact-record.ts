import type { Action, ActionRevision, ActionSample } from "../../domain/action.ts";
import type { Event } from "../../domain/event.ts";
import type { ConsumersMeta, Subscription } from "../../domain/subscription.ts";
import { type AnyMeta, askText, type Envelope } from "../api/resource.ts";
import { memberText } from "../parts/json-tokens.ts";

/** A record with the text of its payload, schema or filter, byte for byte: no number in it was read. */
export type Exact<T> = T & { readonly exactText: string };

export type ReadAction = Exact<Action>;
/** Its text is `null` where it has no filter. */
export type ReadSubscription = Exact<Subscription>;
export type ReadEvent = Exact<Omit<Event, "payload">>;

/** What reads a record at a path, and keeps the text of one member of it. */
const reading =
  <T, M = AnyMeta>(member: string) =>
  async (path: string, signal?: AbortSignal): Promise<Envelope<Exact<T>, M>> => {
    const text = await askText(path, { signal });
    const answer = JSON.parse(text) as Envelope<T, M>;
    const exactText = memberText(memberText(text, "data") ?? "{}", member) ?? "null";
    return { ...answer, data: { ...answer.data, exactText } };
  };

export const readAction = reading<Action>("schemata");
export const readRevision = reading<ActionRevision>("schemata");
export const readSample = reading<ActionSample>("payload");
export const readSubscription = reading<Subscription, ConsumersMeta>("filter");
export const readEvent = reading<Omit<Event, "payload">>("payload");

export const eventPath = (id: string | number): string => `/v1/events/${encodeURIComponent(id)}`;
