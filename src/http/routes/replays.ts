import {
  NEW_REPLAY,
  type NewReplay,
  REPLAY_QUERY,
  REPLAY_SELECTIONS,
  REPLAY_STATUSES,
} from "../../domain/replay.ts";
import { parseJson } from "../../json/raw-json.ts";
import { jsonReply } from "../response.ts";
import { BODY_MAX_BYTES, field, type JsonSchema, many, one, operation, record, type Route } from "./route.ts";

const replayed = {
  subscription_id: field.rowid,
  application: field.text,
  subscription: field.text,
  action: field.text,
  selection: { type: "string", enum: REPLAY_SELECTIONS },
  from: { ...field.timestamp, description: "Of the events' publication, included." },
  to: { ...field.timestamp, description: "Not included." },
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
      description: "`done`: each one was handed to delivery, where `GET /v1/deliveries` tells of it.",
    },
    reason: { type: ["string", "null"], description: "Why it ended before it was done." },
    total: {
      type: ["integer", "null"],
      minimum: 0,
      description: "What there was to send when it began; `null` until it is counted.",
    },
    queued: { ...field.count, description: "Handed to delivery so far." },
    skipped: {
      ...field.count,
      description:
        "Of the total: gone, or sent again by somebody else, when their turn came. Known once it is done.",
    },
    timestamped: field.timestamp,
    finished_at: field.nullableTimestamp,
  }),
};

const tag = "replays";

export const REPLAY_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/subscriptions/:id/replay",
    operationId: "replaySubscription",
    tag,
    summary: "Send a subscription many events of the past, in the background",
    description:
      "Only events of its present action. Live deliveries come first: a replay goes on as fast as the handler takes them, and waits while the subscription is paused. One runs per subscription at a time.",
    access: "token",
    scope: "write",
    body: NEW_REPLAY,
    answers: {
      200: { description: "With `dry_run`: what would be sent.", schema: one("ReplayCount") },
      201: { description: "The replay, which has begun.", schema: one("Replay") },
    },
    failures: [404, 409],
    async handle(evreg, request) {
      const id = request.id();
      const input = parseJson(await request.body(BODY_MAX_BYTES)) as
        | (NewReplay & { dry_run?: unknown })
        | null;
      // What is none of these is refused either way.
      if (input?.dry_run === true) return jsonReply(200, await evreg.replays.count(id, input));
      return jsonReply(201, await evreg.replays.start(id, input as NewReplay));
    },
  },
  operation({
    path: "/v1/replays",
    operationId: "listReplays",
    summary: "Replays, newest first",
    query: REPLAY_QUERY,
    answer: ["The replays.", many("Replay")],
    run: (evreg, { query }) => evreg.replays.list(query),
  }),
  operation({
    path: "/v1/replays/:id",
    operationId: "getReplay",
    summary: "One replay and how far it has come",
    answer: ["The replay.", one("Replay")],
    failures: [404],
    run: (evreg, { id }) => evreg.replays.get(id),
  }),
  operation({
    method: "POST",
    path: "/v1/replays/:id/cancel",
    operationId: "cancelReplay",
    summary: "End a replay; what it handed to delivery is sent all the same",
    answer: ["The cancelled replay.", one("Replay")],
    failures: [404, 409],
    run: (evreg, { id }) => evreg.replays.cancel(id),
  }),
];
