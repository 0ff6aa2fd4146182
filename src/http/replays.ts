import type { NewReplay } from "../domain/replay.ts";
import { NEW_REPLAY, REPLAY_QUERY } from "../domain/requests/replays.ts";
import { parseJson } from "../json/parse.ts";
import { PAGE_BYTES } from "./answer-memory.ts";
import { many, one } from "./records/members.ts";
import { reply } from "./reply.ts";
import { BODY_MAX_BYTES } from "./route.ts";
import type { Route } from "./route.ts";

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
