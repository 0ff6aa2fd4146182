import { EvregError, invalidField } from "../domain/error.ts";
import type { NewEvent } from "../domain/event.ts";
import type { HandlerTest } from "../domain/webhook.ts";
import { matches } from "../domain/names.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { checkNewEvent } from "./publisher.ts";
import { nonConforming } from "./refusals.ts";
import { existing, missingAction } from "./requests.ts";

/** Does what `SubscriptionsPort.test` says, for a subscription that the caller may change. */
export async function testHandler(
  context: ServiceContext,
  access: Access,
  tested: Subscription,
  input: NewEvent,
  signal: AbortSignal | undefined,
): Promise<HandlerTest> {
  const { store, actions, payloads, limits, background } = context;
  const { rowid: id } = tested;
  checkNewEvent(input, limits.payloadBytes);
  if (input.idempotency_key !== undefined) {
    throw invalidField("idempotency_key", "must be left out, as a test is stored nowhere");
  }
  if (tested.mode === "pull") {
    const message = `Subscription ${id} is of mode pull: the subscription has no handler to test, as consumers claim its deliveries.`;
    throw new EvregError("invalid", message, { field: "mode", message, value: tested.mode });
  }
  const { action } = input;
  if (!matches(tested.action, action)) {
    throw invalidField("action", `must be ${tested.action}, as the subscription hears no other`, action);
  }
  const loaded = actions.get(action) ?? (await actions.load(action));
  if (loaded === undefined) throw await missingAction(store.catalog, access, action, "action");
  const failure = await payloads.failureOf(loaded, input.payload, { caller: access.caller });
  if (failure !== undefined) {
    if (access.allows("read", loaded.application)) throw nonConforming(input, failure);
    // What breaks the schema tells what is in it.
    throw invalidField("payload", `does not conform to the schema of ${action}`);
  }
  const sendable = existing(await store.queue.findSendable(id), "subscription", id);
  if (background.engine === undefined) {
    throw new EvregError("unavailable", "No server runs on this data, and only a server sends to handlers.");
  }
  const { payload } = input;
  const result = await background.engine.test({
    subscription: sendable,
    action,
    payload: payload.bytes,
    caller: access.caller,
    signal,
  });
  // A refusal shows what names stand for inside the operator's network.
  return access.allows("admin") ? result : { ...result, refusal: null };
}
