import { DELIVERY_STATUSES } from "../../model/delivery.ts";
import { EvregError } from "../../domain/error.ts";
import { NEW_CLAIM, type NewClaim, PULL_RESULTS } from "../../domain/pull.ts";
import { WEBHOOK_HEADERS } from "../../domain/webhook.ts";
import { parseJson } from "../../json/raw-json.ts";
import { jsonReply } from "../response.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { field } from "../../model/field.ts";
import { record } from "../../model/schemas.ts";
import { BODY_MAX_BYTES, many, operation, routeAt, type Route, targetOf } from "./route.ts";

/** What the results of a hundred deliveries may come to, each with a long answer. */
const RESULTS_MAX_BYTES = 4 * 1024 * 1024;

/** What consumers are answered. */
export const PULL_RECORDS: Readonly<Record<string, JsonSchema>> = {
  PulledDelivery: record({
    lease: { ...field.text, description: "Names it in its result. Opaque." },
    delivery_id: field.rowid,
    event_id: field.rowid,
    action: field.text,
    attempt: { type: "integer", minimum: 1 },
    headers: {
      type: "object",
      additionalProperties: field.text,
      description: `All that a handler would be sent, such as ${Object.keys(WEBHOOK_HEADERS).join(", ")}.`,
    },
    body: {
      ...field.text,
      description: "Its UTF-8 bytes are those that a handler would be sent, and are signed.",
    },
    expires_at: { ...field.timestamp, description: "When the lease ends, and the delivery is due again." },
  }),
  FinishedPull: record({
    lease: field.text,
    outcome: {
      type: "string",
      enum: ["stored", "fenced"],
      description:
        "`fenced`: the lease had ended, or its result is stored already. Somebody else has the delivery, or will have it.",
    },
    status: {
      enum: [...DELIVERY_STATUSES, null],
      description: "Of the delivery then; `null` where it is fenced.",
    },
    expires_at: { ...field.nullableTimestamp, description: "Of one that was extended: when its lease ends." },
  }),
};

export const PULL_ROUTES: readonly Route[] = [
  routeAt(targetOf("subscriptions.claim"), "claimDeliveries", "Take deliveries of a pull subscription", {
    description:
      "Answers those that are due, or waits up to `wait_ms` for the first; then the list is empty. They are this consumer's until their leases end. Those who wait for deliveries of the same subscription are served in turn.",
    scope: "listen",
    body: NEW_CLAIM,
    answers: { 200: { description: "The deliveries.", schema: many("PulledDelivery") } },
    failures: [404, 429],
    async handle(evreg, request, { responses }) {
      const id = request.id();
      const input = parseJson(await request.body(BODY_MAX_BYTES)) as NewClaim;
      const { data } = await request.untilDisconnect((signal) =>
        evreg.subscriptions.claim(id, input, signal),
      );
      const reply = responses.tryReserve(request, jsonReply(200, { data }));
      if (reply !== undefined) return reply;
      // There is no memory for it now, and these cannot be read again.
      const results = data.map(({ lease }) => ({ lease, outcome: "released" }) as const);
      await evreg.subscriptions.finish(id, { results });
      throw new EvregError(
        "unavailable",
        "Too many large answers are on their way at once. Nothing was taken; ask again in a moment, or for fewer (max).",
      );
    },
  }),
  operation("subscriptions.finish", "finishDeliveries", "Say what became of deliveries that were taken", {
    description:
      "Each result is fenced by its lease, and stored once. A failed one is retried, and counts, as a failed attempt to reach a handler does.",
    scope: "listen",
    body: PULL_RESULTS,
    maxBodyBytes: RESULTS_MAX_BYTES,
    answer: ["An outcome for each, in order.", many("FinishedPull")],
    failures: [404],
  }),
];
