import {
  NEW_REPLAY,
  type NewReplay,
  REPLAY_QUERY,
  REPLAY_SELECTIONS,
  REPLAY_STATUSES,
} from "../../domain/replay.ts";
import { parseJson } from "../../json/raw-json.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import { reply } from "../response.ts";
import {
  BODY_MAX_BYTES,
  count,
  type JsonSchema,
  many,
  nullableTimestamp,
  one,
  record,
  type Route,
  rowid,
  text,
  timestamp,
} from "./route.ts";

const replayed = {
  subscription_id: rowid,
  application: text,
  subscription: text,
  action: text,
  selection: { type: "string", enum: REPLAY_SELECTIONS },
  from: { ...timestamp, description: "Of the events' publication, included." },
  to: { ...timestamp, description: "Not included." },
} as const;

/** Replays as they are answered. */
export const REPLAY_RECORDS: Readonly<Record<string, JsonSchema>> = {
  ReplayCount: record({ ...replayed, total: { ...count, description: "Deliveries it would make due." } }),
  Replay: record({
    rowid,
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
    queued: { ...count, description: "Handed to delivery so far." },
    skipped: {
      ...count,
      description:
        "Of the total: gone, or sent again by somebody else, when their turn came. Known once it is done.",
    },
    timestamped: timestamp,
    finished_at: nullableTimestamp,
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
    async handle(evreg, incoming) {
      const id = incoming.id();
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as
        | (NewReplay & { dry_run?: unknown })
        | null;
      // What is none of these is refused either way.
      if (input?.dry_run === true) return reply(200, await evreg.replays.count(id, input));
      return reply(201, await evreg.replays.start(id, input as NewReplay));
    },
  },
  {
    method: "GET",
    path: "/v1/replays",
    operationId: "listReplays",
    tag,
    summary: "Replays, newest first",
    access: "token",
    scope: "read",
    query: REPLAY_QUERY,
    answers: { 200: { description: "The replays.", schema: many("Replay") } },
    failures: [],
    async handle(evreg, incoming, { memory }) {
      const query = incoming.query(REPLAY_QUERY);
      return memory.answer(incoming, PAGE_BYTES, async () => reply(200, await evreg.replays.list(query)));
    },
  },
  {
    method: "GET",
    path: "/v1/replays/:id",
    operationId: "getReplay",
    tag,
    summary: "One replay and how far it has come",
    access: "token",
    scope: "read",
    answers: { 200: { description: "The replay.", schema: one("Replay") } },
    failures: [404],
    async handle(evreg, incoming) {
      return reply(200, await evreg.replays.get(incoming.id()));
    },
  },
  {
    method: "POST",
    path: "/v1/replays/:id/cancel",
    operationId: "cancelReplay",
    tag,
    summary: "End a replay; what it handed to delivery is sent all the same",
    access: "token",
    scope: "write",
    answers: { 200: { description: "The cancelled replay.", schema: one("Replay") } },
    failures: [404, 409],
    async handle(evreg, incoming) {
      return reply(200, await evreg.replays.cancel(incoming.id()));
    },
  },
];
