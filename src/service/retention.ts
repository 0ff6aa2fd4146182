import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { AuditStore, StatsStore } from "../store/history.ts";
import type { EventStore } from "../store/events.ts";
import type { StoreNode } from "../store/store.ts";
import { Rounds } from "./rounds.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { SubscriptionsPort } from "../evreg.ts";

export interface RetentionOptions {
  readonly events: Pick<EventStore, "removeExpired">;
  readonly node: Pick<StoreNode, "hasDuties" | "isAlike">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly audit: Pick<AuditStore, "removeExpired">;
  readonly stats: Pick<StatsStore, "removeExpired">;
  /** How long events stay; 0 for good. */
  readonly retentionMs: number;
  /** How long it is kept who changed what; 0 for good. */
  readonly auditMs: number;
}

const ROUND_EVERY_MS = 5 * 60_000;
const DUTIES_EVERY_MS = 10_000;
/** How often events that stayed for an unfinished delivery are scanned again; they may be millions. */
const RESCAN_MS = 60 * 60_000;

/**
 * After each step comes a pause of so many times what it took, its wait in the store's queue included. On a busy store steps
 * take longer, so removing slows down when publishing and delivering need the time.
 */
const PAUSE_FACTOR = 4;
const MIN_PAUSE_MS = 5;
const MAX_PAUSE_MS = 1_000;

/** Removes events, kept changes and figures that are too old, in rounds of small steps: nothing that any of several nodes would keep. */
export function createRetention(options: RetentionOptions): Rounds {
  const { events, audit, stats, node, clock, logger, retentionMs, auditMs } = options;
  /** All events before this time were scanned; those still there had an unfinished delivery then. */
  let scannedBeforeMs: number | undefined;
  let scannedAllMs = 0;
  /** A node gets them some time after its start, or when another one ends. */
  let hadDuties = false;

  async function removeAudit(stopping: AbortSignal): Promise<void> {
    const beforeMs = clock.now() - auditMs;
    const step = (): Promise<number> => inStep(() => audit.removeExpired(beforeMs), stopping);
    while (!stopping.aborted && (await isAgreed("retention.audit")) && (await step()) > 0);
  }

  async function removeStats(stopping: AbortSignal): Promise<void> {
    const step = (): Promise<number> => inStep(() => stats.removeExpired(clock.now()), stopping);
    while (!stopping.aborted && (await step()) > 0);
  }

  async function removeEvents(olderThanMs: number, stopping: AbortSignal): Promise<void> {
    const startedMs = clock.monotonicMs();
    const beforeMs = clock.now() - olderThanMs;
    const isForAll = startedMs - scannedAllMs >= RESCAN_MS;
    const fromMs = isForAll ? undefined : scannedBeforeMs;
    const range = { beforeMs, ...(fromMs === undefined ? {} : { fromMs }) };
    const removed = { events: 0, deliveries: 0 };
    let next: number | undefined;
    do {
      if (stopping.aborted || !(await isAgreed("retention.events"))) return;
      const step = await inStep(() => events.removeExpired(range, next), stopping);
      removed.events += step.events;
      removed.deliveries += step.deliveries;
      ({ next } = step);
    } while (next !== undefined);
    scannedBeforeMs = beforeMs;
    if (isForAll) scannedAllMs = startedMs;
    if (removed.events > 0) logger.info(removed, "Events older than retention.events were removed.");
  }

  /** Asked before each step: what is removed is gone, and a node that starts with another value may be the one that is right. */
  async function isAgreed(setting: string): Promise<boolean> {
    const isAlike = await node.isAlike(setting);
    if (!isAlike)
      logger.warn({}, `Nothing is removed for ${setting} while the nodes have different values of it.`);
    return isAlike;
  }

  async function inStep<T>(work: () => Promise<T>, stopping: AbortSignal): Promise<T> {
    const startedMs = clock.monotonicMs();
    const result = await work();
    const pauseMs = (clock.monotonicMs() - startedMs) * PAUSE_FACTOR;
    await sleep(clock, Math.min(Math.max(pauseMs, MIN_PAUSE_MS), MAX_PAUSE_MS), stopping);
    return result;
  }

  return new Rounds({
    clock,
    logger,
    waitMs: (round) => (round === 0 ? 0 : hadDuties ? ROUND_EVERY_MS : DUTIES_EVERY_MS),
    async work(stopping) {
      hadDuties = node.hasDuties();
      if (!hadDuties) return;
      if (retentionMs > 0) await removeEvents(retentionMs, stopping);
      if (auditMs > 0) await removeAudit(stopping);
      await removeStats(stopping);
    },
    failed: "Removing old events failed; it is tried again in a while.",
  });
}

interface ExpiryOptions {
  /** The port of somebody who may delete all. */
  readonly evreg: { readonly subscriptions: Pick<SubscriptionsPort, "list" | "delete"> };
  readonly node: Pick<StoreNode, "hasDuties">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Consumers that could not claim while the server was stopped have so long to come back. */
const GRACE_MS = 3_600_000;

/** Deletes pull subscriptions from which nobody has claimed for their `expires_after_ms`. */
export function createSubscriptionExpiry({ evreg, node, clock, logger }: ExpiryOptions): Rounds {
  return new Rounds({
    clock,
    logger,
    waitMs: (round) => (round === 0 ? GRACE_MS : ROUND_EVERY_MS),
    async work() {
      if (!node.hasDuties()) return;
      for (const one of (await evreg.subscriptions.list()).data) {
        if (!isExpired(one, clock.now())) continue;
        await evreg.subscriptions.delete(one.rowid);
        const { rowid, application, subscription, last_claim_at: lastClaim } = one;
        logger.info(
          { subscription: rowid, name: `${application}/${subscription}`, lastClaim },
          "Deleted a subscription from which nobody has claimed for its expires_after_ms.",
        );
      }
    },
    failed: "Looking for expired subscriptions failed; it is tried again in a while.",
  });
}

function isExpired(
  { expires_after_ms: afterMs, last_claim_at, timestamped }: Subscription,
  nowMs: number,
): boolean {
  return afterMs !== null && nowMs - Date.parse(last_claim_at ?? timestamped) >= afterMs;
}
