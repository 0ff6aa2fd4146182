import type { Store } from "../store/store.ts";
import { type Instruments, only } from "./instruments.ts";

/** Whether it works, and what committing takes. */
export function addStoreMetrics(
  instruments: Instruments,
  store: Pick<Store, "commits" | "condition" | "damagedEvents">,
  isDelivering: () => boolean,
): void {
  instruments.gauge({ name: "evreg_store_available", help: "1 while the store commits." }, () =>
    only(store.condition().status === "ok" ? 1 : 0),
  );
  instruments.gauge({ name: "evreg_engine_running", help: "1 while deliveries are sent." }, () =>
    only(isDelivering() ? 1 : 0),
  );
  instruments.gauge(
    {
      name: "evreg_store_damaged_events",
      help: "Events found damaged in the data file since the start; at most 1,000 are counted.",
    },
    () => only(store.damagedEvents().length),
  );
  instruments.gauge(
    {
      name: "evreg_store_checkpoint_failing",
      help: "1 while the log cannot be moved into the data file, and grows.",
    },
    () => only(store.commits().isCheckpointFailing ? 1 : 0),
  );
  const { commitSeconds, transactionSeconds, writes } = store.commits();
  instruments.histogram(
    {
      name: "evreg_store_commit_duration_seconds",
      help: "What making a transaction durable took, its fsync included.",
    },
    commitSeconds,
  );
  instruments.histogram(
    {
      name: "evreg_store_transaction_duration_seconds",
      help: "From a transaction's beginning until it was durable.",
    },
    transactionSeconds,
  );
  instruments.histogram(
    {
      name: "evreg_store_commit_writes",
      help: "Writes of the service and the engine that one transaction carried.",
    },
    writes,
  );
}
