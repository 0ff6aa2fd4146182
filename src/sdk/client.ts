// First, as what the others load fails on an older Node.
import "./node-version.ts";
import { connect as connectPort, type ConnectOptions } from "../client/client.ts";
import type { BatchOptions, BatchResult, NewEvent } from "../domain/event.ts";
import type { HandlerTest } from "../domain/webhook.ts";
import type { BatchItem } from "../domain/publish-body.ts";
import type { Answer, EventsPort, Evreg, Published, SubscriptionsPort } from "../evreg.ts";

// What `evreg/client` is: all that a program needs to ask a server, and nothing that one is made of.

export type { ConnectOptions } from "../client/client.ts";
export { consume } from "../client/consume.ts";
export type { ConsumedDelivery, ConsumeOptions, ConsumeReport } from "../client/consume.ts";
export { EvregError } from "../domain/error.ts";
export type { ErrorBody, ErrorDetails, EvregErrorCode } from "../domain/error.ts";
export { RawJson } from "../json/raw-json.ts";
export type * from "../evreg.ts";
export type * from "../domain/action.ts";
export type * from "../domain/audit.ts";
export type * from "../domain/delivery.ts";
export type * from "../domain/event.ts";
export type * from "../domain/operations.ts";
export type * from "../domain/publish-body.ts";
export type * from "../domain/pull.ts";
export type * from "../domain/replay.ts";
export type * from "../domain/stats/stats.ts";
export type * from "../domain/stream.ts";
export type * from "../domain/subscription.ts";
export type * from "../domain/subscription-settings.ts";
export type * from "../domain/token.ts";
export type * from "../domain/webhook.ts";

/** An event to publish, its payload as an object or as the exact bytes of one (`RawJson`). */
export interface EventInput extends Omit<NewEvent, "payload"> {
  readonly payload: object;
}

export interface ClientEvents extends EventsPort {
  publish(input: EventInput): Promise<Published>;
  publishBatch(items: readonly (EventInput | BatchItem)[], options?: BatchOptions): Promise<BatchResult>;
}

export interface ClientSubscriptions extends SubscriptionsPort {
  test(id: number, input: EventInput): Promise<Answer<HandlerTest>>;
}

export interface Client extends Evreg {
  readonly events: ClientEvents;
  readonly subscriptions: ClientSubscriptions;
}

/**
 * All of evreg, done by the server at `url`; nothing is sent before the first call. Events that come back have their
 * payload as `RawJson`: `payload.value()` parses it, `payload.bytes` are those that were published.
 * Every failure is an `EvregError` whose `code` says of which kind.
 */
export function connect(options: ConnectOptions): Client {
  // What is not `RawJson` is written as `JSON.stringify` writes it, like the rest of a request.
  return connectPort(options);
}
