import { EvregError } from "../../domain/error.ts";
import { NEW_CLAIM, type NewClaim, PULL_RESULTS } from "../../domain/pull.ts";
import { jsonReply } from "../response.ts";
import { BODY_MAX_BYTES, many, operation, routeAt, type Route, targetOf } from "./route.ts";

/** What the results of a hundred deliveries may come to, each with a long answer. */
const RESULTS_MAX_BYTES = 4 * 1024 * 1024;

export const PULL_ROUTES: readonly Route[] = [
  routeAt(targetOf("subscriptions.claim"), "claimDeliveries", "Take deliveries of a pull subscription", {
    description:
      "Answers those that are due, or waits up to `wait_ms` for the first; then the list is empty. They are this consumer's until their leases end. Those who wait for deliveries of the same subscription are served in turn.",
    scope: "listen",
    body: NEW_CLAIM,
    answers: { 200: { description: "The deliveries.", schema: many("PulledDelivery") } },
    failures: [429],
    async handle(evreg, request, { responses }) {
      const id = request.id();
      const input = (await request.json(BODY_MAX_BYTES)) as NewClaim;
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
  }),
];
