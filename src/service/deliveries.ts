import { type Delivery, DELIVERY_LIMITS, DELIVERY_QUERY, withoutRefusal } from "../domain/delivery.ts";
import { invalidField } from "../domain/error.ts";
import { parseIsoTime } from "../domain/formats.ts";
import { NEW_REPLAY, type NewReplay, REPLAY_LIMITS, REPLAY_QUERY } from "../domain/replay.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { DeliveriesPort, ReplaysPort } from "../evreg.ts";
import { toIso } from "../runtime/clock.ts";
import type { DeliverySelection } from "../store/queue.ts";
import type { ReplayRequest, ReplaySelector } from "../store/history.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { listenable } from "./subscriptions.ts";
import {
  checkId,
  checkQuery,
  checkTime,
  existing,
  finder,
  omitUndefined,
  RANGE_ORDER,
  readBody,
  timeRange,
} from "./requests.ts";

/** A delivery belongs to the application of its subscription. */
export function deliveriesPort(
  { store, clock, background, counts, feed }: ServiceContext,
  access: Access,
): DeliveriesPort {
  const { readable, writable } = finder(access, "delivery", (id: number) => store.queue.find(checkId(id)));

  return {
    async list(query = {}) {
      const applications = access.readable();
      const {
        from: _f,
        to: _t,
        limit = DELIVERY_LIMITS.listDefault,
        cause: name,
        ...filters
      } = checkQuery(DELIVERY_QUERY, query);
      const cause = name && { name, nowMs: clock.now() };
      const selection = { ...filters, cause, applications, ...timeRange(query), limit };
      return { data: await store.queue.list(omitUndefined<DeliverySelection>(selection)) };
    },
    async get(id) {
      const delivery = await readable(id);
      if (access.allows("admin")) return { data: delivery };
      return { data: { ...delivery, attempts: delivery.attempts.map(withoutRefusal) } };
    },
    async retry(id) {
      const delivery = await writable(id);
      const retried = existing(await store.queue.retry(id, clock.now(), access.actor), "delivery", id);
      if (delivery.finished_at !== null) counts.retriedDeliveries += 1;
      background.engine?.wake();
      return { data: retried };
    },
    async skip(id) {
      await writable(id);
      const skipped = existing(await store.queue.skip(id, clock.now(), access.actor), "delivery", id);
      background.engine?.wake();
      feed.ended(resultWithoutAttempt(skipped));
      return { data: skipped };
    },
  };
}

/** @param delivery that has just ended */
function resultWithoutAttempt(delivery: Delivery): DeliveryResult {
  const { next_attempt_at: _n, last_error: _l, timestamped, finished_at: finished, ...result } = delivery;
  const nothing = { status_code: null, error_code: null, duration_ms: null };
  return { ...result, ...nothing, timestamped: finished ?? timestamped };
}

/** A replay belongs to the application of its subscription. */
export function replaysPort(context: ServiceContext, access: Access): ReplaysPort {
  const { store, clock, background } = context;
  const { readable, writable } = finder(access, "replay", (id: number) => store.replays.find(checkId(id)));

  async function asked(id: number, input: NewReplay): Promise<[Subscription, ReplayRequest]> {
    const subscription = await listenable(context, access, id);
    const body = readBody<NewReplay>(NEW_REPLAY, input, { from: checkTime, to: checkTime });
    return [subscription, requestOf(id, body, clock.now())];
  }

  return {
    async count(id, input) {
      const [{ application, subscription, action }, request] = await asked(id, input);
      const { selection, fromMs, toMs = clock.now() } = request;
      const total = await store.replays.count(request);
      const range = { from: toIso(fromMs), to: toIso(toMs) };
      return { data: { subscription_id: id, application, subscription, action, selection, ...range, total } };
    },
    async start(id, input) {
      const [subscription, request] = await asked(id, input);
      const replay = existing(
        await store.replays.start(request, clock.now(), access.actor),
        "subscription",
        id,
      );
      // It waits no longer for what its handler asked for.
      if (request.selection === "waiting") background.engine?.wake(subscription);
      background.replays?.wake();
      return { data: replay };
    },
    async list(query = {}) {
      const applications = access.readable();
      const { limit = REPLAY_LIMITS.listDefault, ...filters } = checkQuery(REPLAY_QUERY, query);
      const selector = { ...filters, limit, applications };
      return { data: await store.replays.list(omitUndefined<ReplaySelector>(selector)) };
    },
    async get(id) {
      return { data: await readable(id) };
    },
    async cancel(id) {
      await writable(id);
      return { data: existing(await store.replays.cancel(id, clock.now(), access.actor), "replay", id) };
    },
  };
}

function requestOf(subscription: number, { from, to, status }: NewReplay, nowMs: number): ReplayRequest {
  const fromMs = parseIsoTime(from)!;
  const toMs = to === undefined ? undefined : parseIsoTime(to);
  if (toMs === undefined && fromMs >= nowMs) throw invalidField("from", "must be in the past", from);
  if (toMs !== undefined && fromMs >= toMs) throw invalidField("to", RANGE_ORDER, to);
  return omitUndefined<ReplayRequest>({ subscription, selection: status, fromMs, toMs });
}
