import { isFinal, type Delivery } from "../domain/delivery.ts";
import type { EventsPort } from "../evreg.ts";
import { longerWaitMs } from "./look-wait.ts";

export interface FollowOptions {
  readonly signal: AbortSignal;
  /** `undefined`: as long as it takes. */
  readonly timeoutMs: number | undefined;
  readonly nowMs: () => number;
  /** Rejects when the signal aborts. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  /** Called before each wait, with what it is waited for. */
  readonly waiting?: (deliveries: readonly Delivery[]) => void;
}

export interface Followed {
  readonly deliveries: readonly Delivery[];
  /** `held`: what is left waits for a paused subscription, so nothing more happens by itself. */
  readonly end: "final" | "held" | "timeout" | "interrupted";
}

const FIRST_DELIVERY_POLL_MS = 25;

/** Looks at an event's deliveries until each has come to its end: often at first, then about once a second. */
export async function followDeliveries(
  events: Pick<EventsPort, "deliveries">,
  eventId: number,
  options: FollowOptions,
): Promise<Followed> {
  const { signal, timeoutMs, nowMs, sleep } = options;
  const endsAtMs = timeoutMs === undefined ? Infinity : nowMs() + timeoutMs;
  let waitMs = FIRST_DELIVERY_POLL_MS;
  for (;;) {
    const { data: deliveries } = await events.deliveries(eventId);
    const open = deliveries.filter((delivery) => !isFinal(delivery.status));
    if (open.length === 0) return { deliveries, end: "final" };
    if (open.every((delivery) => delivery.status === "held")) return { deliveries, end: "held" };
    const leftMs = endsAtMs - nowMs();
    if (leftMs <= 0) return { deliveries, end: "timeout" };
    options.waiting?.(deliveries);
    try {
      await sleep(Math.min(waitMs, leftMs), signal);
    } catch {
      return { deliveries, end: "interrupted" };
    }
    waitMs = longerWaitMs(waitMs);
  }
}
