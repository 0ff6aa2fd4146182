import { FAILED_STATUS_CLASSES, type DeliveryCounts } from "../delivery/delivery-counts.ts";
import { ATTEMPT_ERROR_CODES } from "../domain/delivery.ts";
import type { PublishCounts } from "../runtime/publish-counts.ts";
import { byLabel, type Instruments, only, type Sample } from "./instruments.ts";

/** What happened to events and deliveries since the start. */
export function addEventMetrics(
  instruments: Instruments,
  published: PublishCounts,
  delivered: DeliveryCounts,
): void {
  instruments.counter(
    {
      name: "evreg_events_published_total",
      help: "Events stored, by the way they were published; service: by evreg about itself.",
    },
    () => byLabel("via", { single: published.single, batch: published.batch, service: published.service }),
  );
  instruments.counter(
    {
      name: "evreg_events_replayed_total",
      help: "Publishes answered with the earlier event of their idempotency key; nothing was stored.",
    },
    () => byLabel("via", { single: published.replayedSingle, batch: published.replayedBatch }),
  );
  instruments.counter(
    {
      name: "evreg_events_refused_total",
      help: "Publish requests refused as a whole, and refused items of batches, by reason.",
    },
    () => byLabel("reason", published.refused),
  );
  instruments.counter(
    {
      name: "evreg_deliveries_queued_total",
      help: "Deliveries made due: together with their events, by replays, or, once they had ended, by a retry that a person asked for.",
    },
    () =>
      byLabel("by", {
        publish: published.queuedDeliveries,
        replay: published.replayedDeliveries,
        retry: published.retriedDeliveries,
      }),
  );
  instruments.counter(
    { name: "evreg_deliveries_finished_total", help: "Deliveries that came to their end, by outcome." },
    () => byLabel("outcome", delivered.finished),
  );
  instruments.counter(
    {
      name: "evreg_attempts_total",
      help: "Attempts that ended, by outcome and by the class of the answer's status or the error.",
    },
    () => attempts(delivered),
  );
  instruments.gauge({ name: "evreg_attempts_in_flight", help: "Attempts under way now." }, () =>
    only(delivered.inFlight()),
  );
  instruments.gauge(
    {
      name: "evreg_attempts_in_flight_limit",
      help: "Most attempts under way at once: of all subscriptions together, and most that the limit of one may grow to.",
    },
    () => {
      const { inFlight: service, perSubscription: subscription } = delivered.capacity;
      return byLabel("of", { service, subscription });
    },
  );
  instruments.histogram(
    { name: "evreg_attempt_duration_seconds", help: "From an attempt's beginning to its end." },
    delivered.attemptSeconds,
  );
  instruments.histogram(
    {
      name: "evreg_delivery_latency_seconds",
      help: "From an event's publishing to the end of the attempt that delivered it, retries included; without replays and what was sent again by hand.",
    },
    delivered.latencySeconds,
  );
}

function attempts({ deliveredAttempts, failedByStatus, failedByError }: DeliveryCounts): readonly Sample[] {
  return [
    attempt("delivered", "2xx", "", deliveredAttempts),
    ...FAILED_STATUS_CLASSES.map((status) => attempt("failed", status, "", failedByStatus[status])),
    ...ATTEMPT_ERROR_CODES.map((error) =>
      attempt(error === "interrupted" ? "returned" : "failed", "", error, failedByError[error]),
    ),
  ];
}

function attempt(outcome: string, status: string, error: string, value: number): Sample {
  return { labels: { outcome, status_class: status, error_code: error }, value };
}
