import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import type { Claim, ClaimAnswer } from "../../../src/store/claims.ts";
import type { EventSelection, RecordOutcome } from "../../../src/store/events.ts";
import type { AttemptResult, NextStep } from "../../../src/store/finishes.ts";
import type { Store } from "../../../src/store/store.ts";
import type { SubscriptionRecord } from "../../../src/store/subscriptions.ts";
import { claimRequest } from "../../support/claim-request.ts";

export type OpenStore = (folder: string) => Promise<Store>;

/** A moment the suites start from. */
export const NOW = Date.parse("2026-03-01T12:00:00.000Z");

/** A fresh store for each test, and the short words its stories are told in. */
export class Fixture {
  #store: Store | undefined;
  #folder = "";

  static use(open: OpenStore): Fixture {
    const fixture = new Fixture();
    beforeEach(async () => {
      fixture.#folder = mkdtempSync(join(tmpdir(), "evreg-store-"));
      fixture.#store = await open(fixture.#folder);
    });
    afterEach(async () => {
      await fixture.#store?.close();
      rmSync(fixture.#folder, { recursive: true, force: true });
    });
    return fixture;
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error("no store is open");
    return this.#store;
  }

  action(action = "user.created", application = "crm"): Promise<Action> {
    return this.store.createAction({ action, application, schemata: { type: "object" } }, NOW);
  }

  subscription(
    action: Action,
    given: Partial<
      Pick<SubscriptionRecord, "application" | "subscription" | "active" | "maxRetries" | "settings">
    > = {},
  ): Promise<Subscription> {
    const { application = "mailer", subscription = "welcome" } = given;
    const { active = true, maxRetries = 5, settings = {} } = given;
    const handler = `https://${application}.example/${subscription}`;
    const named = { application, subscription, action: action.action, handler };
    const record = { ...named, maxRetries, active, settings };
    return this.store.createSubscription({ ...record, secret: `secret of ${subscription}` }, NOW);
  }

  /** Records `count` events, one call each, a millisecond apart. */
  async publish(action: Action, count = 1, nowMs = NOW): Promise<number[]> {
    const rowids: number[] = [];
    for (let index = 0; index < count; index += 1) {
      const [outcome] = await this.store.recordEvents([eventOf(action, `{"n":${index}}`)], nowMs + index);
      rowids.push(recordedRowid(outcome));
    }
    return rowids;
  }

  claim(given: Partial<Parameters<typeof claimRequest>[0]> = {}): Promise<ClaimAnswer> {
    return this.store.claimDue(claimRequest({ nowMs: NOW + 60_000, ...given }));
  }

  async finish(claim: Claim, next: NextStep, given: Partial<AttemptResult> = {}): Promise<boolean> {
    const { applied } = await this.store.finishAttempts([resultOf(claim, next, given)], NOW + 61_000);
    return applied[0] === true;
  }

  async rowids(query: Partial<EventSelection> = {}): Promise<number[]> {
    const { events } = await this.store.listEvents({ order: "desc", limit: 50, page: 1, ...query });
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

export function resultOf(claim: Claim, next: NextStep, given: Partial<AttemptResult> = {}): AttemptResult {
  const { deliveryId, claimId } = claim;
  return { deliveryId, claimId, startedAtMs: NOW + 60_000, durationMs: 12, next, ...given };
}

export function recordedRowid(outcome: RecordOutcome | undefined): number {
  if (outcome?.kind !== "recorded") throw new Error(`expected it recorded, got ${outcome?.kind}`);
  return outcome.rowid;
}
