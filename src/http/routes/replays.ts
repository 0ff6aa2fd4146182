import {
  NEW_REPLAY,
  type NewReplay,
  REPLAY_QUERY,
  REPLAY_SELECTIONS,
  REPLAY_STATUSES,
} from "../../domain/replay.ts";
import { parseJson } from "../../json/raw-json.ts";
import { jsonReply } from "../response.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { field } from "../../model/field.ts";
import { record } from "../../model/schemas.ts";
import { BODY_MAX_BYTES, many, one, operation, type Route } from "./route.ts";

const replayed = {
  subscription_id: field.rowid,
  application: field.text,
  subscription: field.text,
  action: field.text,
  selection: { type: "string", enum: REPLAY_SELECTIONS },
  from: { ...field.timestamp, description: "Events published from this time on." },
  to: { ...field.timestamp, description: "Events published before this time." },
} as const;

/** Replays as they are answered. */
export const REPLAY_RECORDS: Readonly<Record<string, JsonSchema>> = {
  ReplayCount: record({
    ...replayed,
    total: { ...field.count, description: "Deliveries it would make due." },
  }),
  Replay: record({
    rowid: field.rowid,
    ...replayed,
    status: {
      type: "string",
      enum: REPLAY_STATUSES,
      description: "`done`: all deliveries are due; `GET /v1/deliveries` shows how each of them went.",
    },
    reason: { ...field.nullableText, description: "Why it ended before it was done." },
    total: {
      ...field.nullableCount,
      description:
        "Number of deliveries to send when it started, which those that finish meanwhile do not change, or as many as `queued` where more failed; `null` until they are counted.",
    },
    queued: { ...field.count, description: "Number of deliveries made due so far." },
    skipped: {
      ...field.count,
      description:
        "How many of the total were deleted, or sent again by someone else, before their turn. Known once it is done.",
    },
    timestamped: field.timestamp,
    finished_at: field.nullableTimestamp,
  }),
};

export const REPLAY_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/subscriptions/:id/replay",
    operationId: "replaySubscription",
    tag: "replays",
    summary: "Send many past events to a subscription, in the background",
    description:
      "Only events of its present action. Live deliveries go first: a replay is as fast as the handler, and waits while the subscription is paused. Each subscription has one replay at a time.",
    access: "token",
    scope: "write",
    body: NEW_REPLAY,
    answers: {
      200: { description: "With `dry_run`: what would be sent.", schema: one("ReplayCount") },
      201: { description: "The replay, which has started.", schema: one("Replay") },
    },
    failures: [404, 409],
    async handle(evreg, request) {
      const id = request.id();
      const input = parseJson(await request.body(BODY_MAX_BYTES)) as
        | (NewReplay & { dry_run?: unknown })
        | null;
      // Any other value is refused either way.
      if (input?.dry_run === true) return jsonReply(200, await evreg.replays.count(id, input));
      return jsonReply(201, await evreg.replays.start(id, input as NewReplay));
    },
  },
  operation("GET /v1/replays", "listReplays", "List replays, newest first", {
    query: REPLAY_QUERY,
    answer: ["The replays.", many("Replay")],
    run: (evreg, { query }) => evreg.replays.list(query),
  }),
  operation("GET /v1/replays/:id", "getReplay", "Get one replay and its progress", {
    answer: ["The replay.", one("Replay")],
    failures: [404],
    run: (evreg, { id }) => evreg.replays.get(id),
  }),
  operation(
    "POST /v1/replays/:id/cancel",
    "cancelReplay",
    "Cancel a replay; deliveries that are due already are still sent",
    {
      answer: ["The cancelled replay.", one("Replay")],
      failures: [404, 409],
      run: (evreg, { id }) => evreg.replays.cancel(id),
    },
  ),
];
