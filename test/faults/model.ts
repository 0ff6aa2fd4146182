import type { DeliveryStatus } from "../../src/domain/delivery.ts";
import type { AttemptEnding, Claim } from "../../src/store/queue.ts";

export interface ModelAction {
  /** Of a subscription also a pattern. */
  readonly name: string;
  revision: number;
}

export interface ModelEvent {
  readonly rowid: number;
  readonly action: ModelAction;
  readonly revision: number;
  readonly text: string;
  readonly key: string | undefined;
  /** Up to a second ahead of a clock that was set back. */
  readonly atMs: number;
}

export interface ModelSubscription {
  readonly rowid: number;
  readonly name: string;
  action: ModelAction;
  handler: string;
  maxRetries: number;
  active: boolean;
  /** What an ordered one does with what has used up its retries; `null` where it is not ordered. */
  order: "block" | "skip" | null;
  /** Whether it is ordered by the value of `n`. */
  byKey: boolean;
  disabledReason: string | null;
  deleted: boolean;
}

export interface ModelDelivery {
  readonly event: ModelEvent;
  readonly subscription: ModelSubscription;
  state: "open" | "delivered" | "failed" | "filtered";
  failures: number;
  dueMs: number;
  /** Its place is in the order of its key, which it keeps where its subscription gets another one. */
  key: number | undefined;
  /** Another of its key comes first. */
  isBehind: boolean;
  lastError: string | null;
  lease: { readonly claimId: number; readonly untilMs: number } | undefined;
  readonly outcomes: string[];
}

/** What evreg should hold after the same calls, kept in the plainest way: lists that are searched from end to end. */
export class Model {
  readonly actions: ModelAction[] = [];
  events: ModelEvent[] = [];
  readonly subscriptions: ModelSubscription[] = [];
  deliveries: ModelDelivery[] = [];
  /** Every claim there ever was, also those that have ended. */
  readonly claims: Claim[] = [];

  get living(): ModelSubscription[] {
    return this.subscriptions.filter(({ deleted }) => !deleted);
  }

  keyed(key: string | undefined): ModelEvent | undefined {
    return key === undefined ? undefined : this.events.find((event) => event.key === key);
  }

  record(event: ModelEvent, nowMs: number): void {
    this.events.push(event);
    for (const subscription of this.living) {
      if (!hears(subscription, event.action) || !subscription.active) continue;
      const fresh = { state: "open", failures: 0, lastError: null, lease: undefined, outcomes: [] } as const;
      const due = { dueMs: nowMs, key: undefined, isBehind: false };
      const delivery: ModelDelivery = { ...fresh, outcomes: [], event, subscription, ...due };
      this.deliveries.push(delivery);
      this.place([delivery], nowMs);
    }
  }

  /** Gives them the keys of their events, behind all that have these. */
  place(deliveries: readonly ModelDelivery[], nowMs: number): void {
    const before = deliveries.map(({ key }) => key);
    for (const delivery of deliveries) {
      const key = keyOf(delivery);
      if (key === undefined && delivery.isBehind) delivery.dueMs = Math.min(delivery.event.atMs, nowMs);
      delivery.key = key;
      delivery.isBehind = key !== undefined && delivery.lease === undefined;
    }
    for (const [at, { subscription, key }] of deliveries.entries()) {
      for (const one of [before[at], key]) this.settle(subscription, one, nowMs);
    }
  }

  /** Of each key one is due, the first, and none while one of it is leased. */
  settle(subscription: ModelSubscription, key: number | undefined, nowMs: number): void {
    if (key === undefined) return;
    const open = this.waiting(subscription).filter((one) => one.key === key);
    const isLeased = open.some(({ lease }) => lease !== undefined);
    for (const [at, one] of open.entries()) {
      if (one.lease !== undefined) continue;
      const isFirst = at === 0 && !isLeased;
      if (isFirst && one.isBehind) one.dueMs = Math.min(one.event.atMs, nowMs);
      one.isBehind = !isFirst;
    }
  }

  isTaken(name: string, action: ModelAction): boolean {
    return this.living.some((other) => other.name === name && other.action.name === action.name);
  }

  due(nowMs: number): ModelDelivery[] {
    const open = this.living.filter(({ active }) => active).flatMap((one) => this.waiting(one));
    return open.filter(({ lease, dueMs, isBehind }) => !lease && !isBehind && dueMs <= nowMs);
  }

  /** By a person: it is due with the first that is, or at its place in the order that it has. */
  retry(delivery: ModelDelivery, nowMs: number): void {
    const { subscription, key } = delivery;
    const due = this.waiting(subscription).filter(({ isBehind }) => !isBehind);
    const dueMs = Math.min(nowMs, ...due.map((one) => one.dueMs));
    Object.assign(delivery, { state: "open", failures: 0, dueMs, isBehind: key !== undefined });
    this.settle(subscription, key, nowMs);
  }

  /** The unfinished deliveries of a subscription by event, as an order has them. */
  waiting(subscription: ModelSubscription): ModelDelivery[] {
    return this.deliveries
      .filter((one) => one.subscription === subscription && one.state === "open")
      .toSorted((a, b) => a.event.rowid - b.event.rowid);
  }

  /** The first of each key that is blocked, as they were made. */
  blockers(subscription: ModelSubscription): readonly ModelDelivery[] {
    if (subscription.order !== "block") return [];
    return this.deliveries.filter((one) => {
      const isDue = one.subscription === subscription && one.state === "open" && !one.isBehind;
      return isDue && one.key !== undefined && one.failures > subscription.maxRetries;
    });
  }

  /** Sets the order of what is recorded from now on. */
  setOrder(subscription: ModelSubscription, order: ModelSubscription["order"], byKey: boolean): void {
    subscription.order = order;
    subscription.byKey = byKey;
  }

  leased(claimId: number, eventId: number, subscriptionId: number): ModelDelivery | undefined {
    return this.deliveries.find(
      ({ lease, event, subscription }) =>
        lease?.claimId === claimId && event.rowid === eventId && subscription.rowid === subscriptionId,
    );
  }

  /** Removes the events before that time of which no delivery is unfinished. */
  expire(beforeMs: number): void {
    const unfinished = this.deliveries.filter((one) => statusOf(one) === "delivering" || isUnfinished(one));
    const kept = new Set(unfinished.map(({ event }) => event));
    const isGone = (event: ModelEvent): boolean => event.atMs < beforeMs && !kept.has(event);
    this.deliveries = this.deliveries.filter(({ event }) => !isGone(event));
    this.events = this.events.filter((event) => !isGone(event));
  }

  release(nowMs: number): number {
    const ended = this.deliveries.filter(({ lease }) => lease !== undefined && lease.untilMs <= nowMs);
    for (const delivery of ended) {
      delivery.lease = undefined;
      delivery.dueMs = nowMs;
      delivery.outcomes.push("returned");
    }
    for (const { subscription, key } of ended) this.settle(subscription, key, nowMs);
    return ended.length;
  }
}

function isUnfinished({ state, subscription }: ModelDelivery): boolean {
  return state === "open" && !subscription.deleted;
}

function hears({ action: { name } }: ModelSubscription, action: ModelAction): boolean {
  return name.endsWith(".*") ? action.name.startsWith(name.slice(0, -1)) : name === action.name;
}

/** In one order all have one; in none they have none. */
function keyOf({ event, subscription }: ModelDelivery): number | undefined {
  if (subscription.order === null) return undefined;
  return subscription.byKey ? (JSON.parse(event.text) as { readonly n: number }).n : -1;
}

export function statusOf({ state, lease, failures, subscription }: ModelDelivery): DeliveryStatus {
  if (state !== "open") return state;
  if (lease !== undefined) return "delivering";
  if (subscription.deleted) return "cancelled";
  if (!subscription.active) return "held";
  return failures > 0 ? "waiting" : "pending";
}

/** What came of an attempt. */
export interface ModelResult {
  readonly ending: AttemptEnding;
  readonly error: string | null;
  /** Where it was sent. */
  readonly handler: string;
  /** The wait that the handler asked for. */
  readonly waitMs: number;
}

/** Moves a leased delivery on by what came of its attempt. */
export function finish(delivery: ModelDelivery, result: ModelResult, nowMs: number): void {
  const { ending, error, handler, waitMs } = result;
  delivery.lease = undefined;
  if (ending === "never started") return;
  const { subscription } = delivery;
  const { order, maxRetries } = subscription;
  switch (ending) {
    case "interrupted":
      delivery.outcomes.push("returned");
      delivery.dueMs = nowMs;
      return;
    case "filtered":
      delivery.state = "filtered";
      return;
    case "delivered":
      delivery.outcomes.push("delivered");
      delivery.state = "delivered";
      delivery.lastError = null;
      return;
    case "gone":
    case "failed":
      delivery.outcomes.push("failed");
      delivery.lastError = error;
      delivery.failures += 1;
  }
  const isGone = ending === "gone" && subscription.handler === handler;
  const hasRetries = delivery.failures <= maxRetries;
  const blocks = order === "block" && delivery.key !== undefined;
  // What blocks is tried again without end, but not more than once a second.
  const leastMs = blocks && !hasRetries && ending === "failed" ? 1_000 : 0;
  if (blocks || (hasRetries && !isGone)) delivery.dueMs = nowMs + Math.max(waitMs, leastMs);
  else delivery.state = "failed";
  if (isGone && subscription.active && !subscription.deleted) {
    subscription.active = false;
    subscription.disabledReason = "The handler answered 410 Gone.";
  }
}
