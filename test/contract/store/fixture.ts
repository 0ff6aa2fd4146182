import { afterAll, afterEach, beforeEach } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { Delivery } from "../../../src/domain/delivery.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import type { SubscriptionPatch, SubscriptionRecord } from "../../../src/store/catalog.ts";
import type { EventRecord, EventSelection, RecordOutcome } from "../../../src/store/events.ts";
import type {
  AttemptEnding,
  AttemptResult,
  Claim,
  ClaimAnswer,
  DeliverySelection,
} from "../../../src/store/queue.ts";
import type { Store } from "../../../src/store/store.ts";
import { claimRequest } from "../../support/claim-request.ts";

/** A store of its own for a suite. */
export interface OpenedStore {
  readonly store: Store;
  /** Opens what was closed again, with all that it holds. */
  reopen(): Promise<Store>;
  /** Removes what is left of it, once it is closed. */
  remove(): void;
}

/** Makes an empty store, wherever that is. */
export type OpenStore = () => Promise<OpenedStore>;

/** A moment the suites start from. */
export const NOW = Date.parse("2026-03-01T12:00:00.000Z");

/** When attempts end. */
const FINISHED_MS = NOW + 61_000;
/** Later than whatever a test has done. */
const FAR_MS = NOW + 100 * 365 * 86_400_000;
/** More than these take longer to remove than a new store takes to open. */
const MAX_SUBSCRIPTIONS = 30;
const MAX_CALLS = 20;

/** A store without events and subscriptions for each test, and short words for what the tests do with it. */
export class Fixture {
  #opened: OpenedStore | undefined;
  /** The actions in the store, and which of them the running test made. */
  readonly #actions = new Map<string, Action>();
  readonly #own = new Set<string>();

  /** One store for all tests of a block: what each left behind is removed, and where it cannot be, another is opened. */
  static use(open: OpenStore): Fixture {
    const fixture = new Fixture();
    beforeEach(() => fixture.#open(open));
    afterEach(async () => {
      if (!(await fixture.#sweep())) await fixture.#close();
    });
    afterAll(() => fixture.#close());
    return fixture;
  }

  /** A new store for each test of a block. */
  static fresh(open: OpenStore): Fixture {
    const fixture = new Fixture();
    beforeEach(() => fixture.#open(open));
    afterEach(() => fixture.#close());
    return fixture;
  }

  async #open(open: OpenStore): Promise<void> {
    this.#opened ??= await open();
  }

  async #close(): Promise<void> {
    if (this.#opened === undefined) return;
    await this.#opened.store.close();
    this.#opened.remove();
    this.#opened = undefined;
    this.#actions.clear();
    this.#own.clear();
  }

  /** Whether the store is as the next test may find it; actions stay, as long as they are as they were made. */
  async #sweep(): Promise<boolean> {
    const { store } = this;
    if (store.health().status !== "ok") return false;
    const actions = await Promise.all([...this.#own].map((name) => store.catalog.findAction(name)));
    if (actions.some((action) => action?.version !== 1)) return false;
    this.#own.clear();
    const subscriptions = await store.catalog.listSubscriptions({});
    if (subscriptions.length > MAX_SUBSCRIPTIONS) return false;
    await Promise.all(subscriptions.map(({ rowid }) => store.catalog.deleteSubscription(rowid, FAR_MS)));
    await store.queue.releaseExpired(FAR_MS);
    let next: number | undefined;
    for (let calls = 0; calls === 0 || next !== undefined; calls += 1) {
      if (calls > MAX_CALLS) return false;
      ({ next } = await store.events.removeExpired({ beforeMs: FAR_MS + 1 }, next));
    }
    const { total } = await store.events.list({ order: "desc", limit: 1, page: 1 });
    return total === 0 && (await store.queue.list({ limit: 1 })).length === 0;
  }

  get store(): Store {
    if (this.#opened === undefined) throw new Error("no store is open");
    return this.#opened.store;
  }

  get catalog(): Store["catalog"] {
    return this.store.catalog;
  }

  get events(): Store["events"] {
    return this.store.events;
  }

  get queue(): Store["queue"] {
    return this.store.queue;
  }

  get replays(): Store["replays"] {
    return this.store.replays;
  }

  get tokens(): Store["tokens"] {
    return this.store.tokens;
  }

  get stats(): Store["stats"] {
    return this.store.stats;
  }

  async action(action = "user.created", application = "crm"): Promise<Action> {
    const previous = this.#actions.get(action);
    const isPrevious = previous?.application === application && !this.#own.has(action);
    const made = isPrevious
      ? previous
      : await this.store.catalog.createAction({ action, application, schemata: { type: "object" } }, NOW);
    this.#actions.set(action, made);
    this.#own.add(action);
    return made;
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
    const created = await this.store.catalog.createSubscription(
      { ...record, secret: `secret of ${subscription}` },
      NOW,
    );
    return { ...created, handler };
  }

  /** Records `count` events, one call each, a millisecond apart. */
  async publish(action: Action, count = 1, nowMs = NOW): Promise<number[]> {
    const rowids: number[] = [];
    for (let index = 0; index < count; index += 1) {
      const [outcome] = await this.store.events.record([eventOf(action, `{"n":${index}}`)], nowMs + index);
      rowids.push(recordedRowid(outcome));
    }
    return rowids;
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
    return this.store.queue.claim(claimRequest({ nowMs: NOW + 60_000, ...given }));
  }

  async finish(claim: Claim, ending: AttemptEnding, given: Partial<AttemptResult> = {}): Promise<boolean> {
    const [outcome] = await this.store.queue.finish([resultOf(claim, ending, given)], FINISHED_MS);
    return outcome?.kind === "stored";
  }

  /** Fails an attempt whose handler asks for no other one before that time. */
  fail(claim: Claim, retryAtMs: number, given: Partial<AttemptResult> = {}): Promise<boolean> {
    return this.finish(claim, "failed", { retryAfterMs: retryAtMs - FINISHED_MS, ...given });
  }

  /** Fails an attempt, and skips the delivery, whatever retries it has left. */
  async failForGood(claim: Claim, given: Partial<AttemptResult> = {}): Promise<void> {
    await this.finish(claim, "failed", given);
    await this.store.queue.skip(claim.deliveryId, FINISHED_MS);
  }

  async rowids(query: Partial<EventSelection> = {}): Promise<number[]> {
    const { events } = await this.store.events.list({ order: "desc", limit: 50, page: 1, ...query });
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
