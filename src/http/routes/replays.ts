import { NEW_REPLAY, type NewReplay, REPLAY_QUERY } from "../../domain/replay.ts";
import { jsonReply } from "../response.ts";
import { BODY_MAX_BYTES, many, one, operation, routeAt, type Route, targetOf } from "./route.ts";

const SEND_PAST_EVENTS = "Send many past events to a subscription, in the background";

export const REPLAY_ROUTES: readonly Route[] = [
  routeAt(targetOf("replays.start"), "replaySubscription", SEND_PAST_EVENTS, {
    tag: "replays",
    description:
      "Only events of its present action. Live deliveries go first: a replay is as fast as the handler, and waits while the subscription is paused. Each subscription has one replay at a time.",
    body: NEW_REPLAY,
    answers: {
      200: { description: "With `dry_run`: what would be sent.", schema: one("ReplayCount") },
      201: { description: "The replay, which has started.", schema: one("Replay") },
    },
    failures: [409],
    async handle(evreg, request) {
      const id = request.id();
      const input = (await request.json(BODY_MAX_BYTES)) as (NewReplay & { dry_run?: unknown }) | null;
      // Any other value is refused either way.
      if (input?.dry_run === true) return jsonReply(200, await evreg.replays.count(id, input));
      return jsonReply(201, await evreg.replays.start(id, input as NewReplay));
    },
  }),
  operation("replays.list", "listReplays", "List replays, newest first", {
    query: REPLAY_QUERY,
    answer: ["The replays.", many("Replay")],
  }),
  operation("replays.get", "getReplay", "Get one replay and its progress", {
    answer: ["The replay.", one("Replay")],
  }),
  operation("replays.cancel", "cancelReplay", "Cancel a replay; what is due already is sent", {
    answer: ["The cancelled replay.", one("Replay")],
    failures: [409],
  }),
];
