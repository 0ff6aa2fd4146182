import { afterEach, beforeEach, expect } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { Delivery } from "../../../src/domain/delivery.ts";
import { BACKLOG_CAUSES, type StatsBacklog } from "../../../src/domain/stats/stats.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import { omitUndefined } from "../../../src/service/requests.ts";
import type { SubscriptionPatch, SubscriptionRecord } from "../../../src/store/catalog.ts";
import type { EventRecord, EventSelection, RecordOutcome } from "../../../src/store/events.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimAnswer,
  DeliveryQueue,
  DeliverySelection,
  StatsSelection,
} from "../../../src/store/queue.ts";
import type { Store } from "../../../src/store/store.ts";
import { claimRequest } from "../../support/claim-request.ts";

interface OpenedStore {
  readonly store: Store;
  /** Removes what is left of it, once it is closed. */
  remove(): void;
}

/** Makes an empty store, wherever that is. */
export type OpenStore = () => Promise<OpenedStore>;

/** Makes one that really ends when it is closed, and opens with all that it holds. */
export type OpenOwnStore = () => Promise<OpenedStore & { reopen(): Promise<Store> }>;

/** A moment the suites start from. */
export const NOW = Date.parse("2026-03-01T12:00:00.000Z");

/** When attempts end. */
const FINISHED_MS = NOW + 61_000;

/** An empty store for each test of a block, its parts, and short words for what the tests do with it. */
export class Fixture {
  store!: Store;
  catalog!: Store["catalog"];
  events!: Store["events"];
  queue!: Store["queue"];
  replays!: Store["replays"];
  tokens!: Store["tokens"];
  stats!: Store["stats"];

  static use(open: OpenStore): Fixture {
    const fixture = new Fixture();
    let opened: OpenedStore | undefined;
    beforeEach(async () => {
      opened = await open();
      Object.assign(fixture, opened.store, { store: opened.store });
    });
    afterEach(async () => {
      await opened?.store.close();
      opened?.remove();
    });
    return fixture;
  }

  action(action = "user.created", application = "crm"): Promise<Action> {
    const input = { action, application, schemata: { type: "object" } };
    return this.catalog.createAction(input, NOW);
  }

  /** One of mode `push`. */
  async subscription(
    action: Action,
    given: Partial<
      Pick<SubscriptionRecord, "application" | "subscription" | "active" | "maxRetries" | "settings">
    > = {},
  ): Promise<Subscription & { readonly handler: string }> {
    const { application = "mailer", subscription = "welcome" } = given;
    const { active = true, maxRetries = 5, settings = {} } = given;
    const handler = `https://${application}.example/${subscription}`;
    const named = { application, subscription, action: action.action, handler };
    const record = { ...named, maxRetries, active, settings };
    const created = await this.catalog.createSubscription(
      { ...record, secret: `secret of ${subscription}` },
      NOW,
    );
    return { ...created, handler };
  }

  /** Records `count` events, one call each, a millisecond apart. */
  async publish(action: Action, count = 1, nowMs = NOW): Promise<number[]> {
    // Asked for at once, they are stored in this order in a transaction or two.
    const outcomes = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        this.events.record([eventOf(action, `{"n":${index}}`)], nowMs + index),
      ),
    );
    return outcomes.map(([outcome]) => recordedRowid(outcome));
  }

  /** A subscription to an action that it makes, and `count` deliveries that are due. */
  async due(count = 1, given: Parameters<Fixture["subscription"]>[1] = {}) {
    const action = await this.action();
    const subscription = await this.subscription(action, given);
    const events = await this.publish(action, count);
    return { action, subscription, id: subscription.rowid, events };
  }

  record(
    batch: readonly EventRecord[],
    nowMs = NOW,
    options?: { readonly atomic: boolean },
  ): Promise<readonly RecordOutcome[]> {
    return this.events.record(batch, nowMs, options);
  }

  update(id: number, patch: SubscriptionPatch, nowMs = NOW): Promise<Subscription | undefined> {
    return this.catalog.updateSubscription(id, patch, nowMs);
  }

  deliveries(query: Partial<DeliverySelection> = {}): Promise<readonly Delivery[]> {
    return this.queue.list({ limit: 50, ...query });
  }

  claim(given: Partial<Parameters<typeof claimRequest>[0]> = {}): Promise<ClaimAnswer> {
    return this.queue.claim(claimRequest({ nowMs: NOW + 60_000, ...given }));
  }

  async finish(claim: Claim, ending: AttemptEnding, given: Partial<AttemptResult> = {}): Promise<boolean> {
    const [outcome] = await this.queue.finish([resultOf(claim, ending, given)], FINISHED_MS);
    return outcome?.kind === "stored";
  }

  /** Claims so much of what is due, and ends each attempt of it in one way. */
  async endAll(
    ending: AttemptEnding,
    given: Partial<AttemptResult> = {},
    claim: Parameters<Fixture["claim"]>[0] = {},
  ): Promise<readonly Claim[]> {
    const { claims } = await this.claim(claim);
    const results = claims.map((one) => resultOf(one, ending, given));
    await this.queue.finish(results, FINISHED_MS);
    return claims;
  }

  /** Fails an attempt whose handler asks for no other one before that time. */
  fail(claim: Claim, retryAtMs: number, given: Partial<AttemptResult> = {}): Promise<boolean> {
    return this.finish(claim, "failed", { retryAfterMs: retryAtMs - FINISHED_MS, ...given });
  }

  /** Fails an attempt, and skips the delivery, whatever retries it has left. */
  async failForGood(claim: Claim, given: Partial<AttemptResult> = {}): Promise<void> {
    await this.finish(claim, "failed", given);
    await this.queue.skip(claim.deliveryId, FINISHED_MS);
  }

  async rowids(query: Partial<EventSelection> = {}): Promise<number[]> {
    const { events } = await this.events.list({ order: "desc", limit: 50, page: 1, ...query });
    return events.map((event) => event.rowid);
  }
}

export function eventOf(
  action: Action,
  payload: string | Uint8Array = "{}",
  idempotencyKey?: string,
): { actionId: number; revision: number; payload: Uint8Array; idempotencyKey?: string } {
  const bytes = typeof payload === "string" ? Buffer.from(payload) : payload;
  const event = { actionId: action.rowid, revision: action.revision, payload: bytes };
  return idempotencyKey === undefined ? event : { ...event, idempotencyKey };
}

/** A result as the engine reports it. */
export function resultOf(
  claim: Claim,
  ending: AttemptEnding,
  given: Partial<AttemptResult> = {},
): AttemptResult {
  const { deliveryId, claimId, subscription } = claim;
  const { handler } = subscription;
  return { deliveryId, claimId, startedAtMs: NOW + 60_000, durationMs: 12, ending, handler, ...given };
}

export function recordedRowid(outcome: RecordOutcome | undefined): number {
  if (outcome?.kind !== "recorded") throw new Error(`expected it recorded, got ${outcome?.kind}`);
  return outcome.rowid;
}

/**
 * What is unfinished, counted, after the list of each cause has shown as many: newest first, the same page by page, and each
 * delivery for one cause only.
 */
export async function agreedBacklog(
  queue: Pick<DeliveryQueue, "backlog" | "list">,
  nowMs: number,
  of: StatsSelection = {},
): Promise<StatsBacklog> {
  const counted = await queue.backlog(nowMs, of);
  const { applications, subscription, action } = of;
  const selection = omitUndefined<DeliverySelection>({ applications, subscription, action, limit: 500 });
  const all: number[] = [];
  for (const name of BACKLOG_CAUSES) {
    const listed = { ...selection, cause: { name, nowMs } };
    const ids = (await queue.list(listed)).map(({ rowid }) => rowid);
    expect([name, ids.length]).toEqual([name, counted[name].deliveries]);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
    const pages: number[] = [];
    for (let [row] = await queue.list({ ...listed, limit: 1 }); row !== undefined;) {
      pages.push(row.rowid);
      [row] = await queue.list({ ...listed, limit: 1, after: row.rowid });
    }
    expect(pages).toEqual(ids);
    all.push(...ids);
  }
  expect(new Set(all).size).toBe(all.length);
  return counted;
}
