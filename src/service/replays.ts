import { invalidField } from "../domain/error.ts";
import { parseIsoTime } from "../domain/iso-time.ts";
import { checkQuery } from "../domain/query.ts";
import { type NewReplay, REPLAY_LIMITS, type Replay } from "../domain/replay.ts";
import { NEW_REPLAY, REPLAY_QUERY } from "../domain/requests/replays.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { ReplaysPort } from "../evreg.ts";
import { toIso } from "../runtime/clock.ts";
import { countWholeReplay } from "../store/count-replay.ts";
import type { ReplayPlan, ReplayRequest, ReplaySelector } from "../store/replays.ts";
import type { Access } from "./access.ts";
import { checkId, given, notFound } from "./answers.ts";
import { checkTime, readBody } from "./bodies.ts";
import type { ServiceContext } from "./context.ts";

/** A replay belongs to the application of its subscription. */
export function replaysPort({ store, clock, wakeReplays }: ServiceContext, access: Access): ReplaysPort {
  async function plan(id: number, input: NewReplay): Promise<[Subscription, ReplayPlan]> {
    access.requireSome("write");
    const subscription = await store.findSubscription(checkId(id));
    if (subscription === undefined) throw notFound("subscription", id);
    access.require("write", subscription.application);
    const body = readBody(NEW_REPLAY, input, { from: checkTime, to: checkTime });
    const planned = await store.planReplay(requestOf(id, body as NewReplay, clock.now()));
    if (planned === undefined) throw notFound("subscription", id);
    return [subscription, planned];
  }

  async function readable(id: number): Promise<Replay> {
    access.requireSome("read");
    const replay = await store.findReplay(checkId(id));
    if (replay === undefined || !access.allows("read", replay.application)) throw notFound("replay", id);
    return replay;
  }

  return {
    async count(id, input) {
      const [{ application, subscription, action }, planned] = await plan(id, input);
      const { selection, fromMs, toMs = clock.now() } = planned;
      const total = await countWholeReplay(planned, (left) => store.countReplay(left));
      const range = { from: toIso(fromMs), to: toIso(toMs) };
      return { data: { subscription_id: id, application, subscription, action, selection, ...range, total } };
    },
    async start(id, input) {
      const [, planned] = await plan(id, input);
      const replay = await store.startReplay(planned, clock.now());
      if (replay === undefined) throw notFound("subscription", id);
      wakeReplays();
      return { data: replay };
    },
    async list(query = {}) {
      const applications = access.readable();
      const {
        subscription,
        status,
        limit = REPLAY_LIMITS.listDefault,
        after,
      } = checkQuery(REPLAY_QUERY, query);
      const selector = { subscription, status, applications, limit, after };
      return { data: await store.listReplays(given<ReplaySelector>(selector)) };
    },
    async get(id) {
      return { data: await readable(id) };
    },
    async cancel(id) {
      access.requireSome("write");
      const found = await store.findReplay(checkId(id));
      if (found === undefined) throw notFound("replay", id);
      access.require("write", found.application);
      const cancelled = await store.cancelReplay(id, clock.now());
      if (cancelled === undefined) throw notFound("replay", id);
      return { data: cancelled };
    },
  };
}

function requestOf(subscription: number, { from, to, status }: NewReplay, nowMs: number): ReplayRequest {
  const fromMs = parseIsoTime(from)!;
  const toMs = to === undefined ? undefined : parseIsoTime(to);
  if (toMs === undefined && fromMs >= nowMs) throw invalidField("from", "must be in the past", from);
  if (toMs !== undefined && fromMs >= toMs) {
    throw invalidField(
      "to",
      "must be later than from: the range begins with from and ends just before to",
      to,
    );
  }
  return given<ReplayRequest>({ subscription, selection: status, fromMs, toMs });
}
