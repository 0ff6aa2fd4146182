import type { Health } from "../domain/health.ts";
import type { StoreCondition } from "../store/store.ts";

/** Whether the service does its work: commits, and delivers. */
export function healthOf(
  condition: StoreCondition,
  engine: Health["engine"],
  identity: { readonly version: string; readonly instance: string },
): Health {
  const store = condition.status === "ok" ? "ok" : "unavailable";
  if (store === "ok" && engine === "running") return { status: "ok", store, engine, ...identity };
  const reason =
    store === "ok"
      ? engine === "failing"
        ? "Deliveries are not being sent: those that are due cannot be read; the log has the cause."
        : "Deliveries are not being sent: the delivery engine is stopped."
      : (condition.reason ?? "The store cannot commit.");
  return { status: "unavailable", reason, store, engine, ...identity };
}
