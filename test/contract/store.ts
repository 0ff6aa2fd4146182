import { describe } from "vitest";
import { actionSuite } from "./store/actions.ts";
import { attemptSuite } from "./store/attempts.ts";
import { auditSuite } from "./store/audit.ts";
import { backlogSuite } from "./store/backlog.ts";
import { claimSuite } from "./store/claims.ts";
import { concurrencySuite } from "./store/concurrency.ts";
import { deliveryListSuite } from "./store/delivery-list.ts";
import { deliveryStorySuite } from "./store/delivery-stories.ts";
import { eventListSuite } from "./store/event-list.ts";
import type { OpenOwnStore, OpenStore } from "./store/fixture.ts";
import { finishSuite } from "./store/finishes.ts";
import { identitySuite } from "./store/identity.ts";
import { idempotencySuite } from "./store/idempotency.ts";
import { nextEventSuite } from "./store/next-events.ts";
import { recordSuite } from "./store/recording.ts";
import { retentionSuite } from "./store/retention.ts";
import { secretSuite } from "./store/secrets.ts";
import { pullSuite } from "./store/pull.ts";
import { replaySuite } from "./store/replays.ts";
import { serviceEventSuite } from "./store/service-events.ts";
import { statsSuite } from "./store/stats.ts";
import { subscriptionSuite } from "./store/subscriptions.ts";
import { tokenSuite } from "./store/tokens.ts";

/**
 * What every engine behind the Store port must do.
 * @param openOwn makes an empty store; the suite closes and removes it
 * @param open makes one for a test that does not look at how it ends
 */
export function storeContract(name: string, openOwn: OpenOwnStore, open: OpenStore = openOwn): void {
  describe(`store contract: ${name}`, () => {
    describe("the identity of the data", () => identitySuite(openOwn));
    describe("actions", () => actionSuite(open));
    describe("recording events", () => recordSuite(open));
    describe("idempotency keys", () => idempotencySuite(open));
    describe("listing events", () => eventListSuite(open));
    describe("the next events", () => nextEventSuite(open));
    describe("subscriptions", () => subscriptionSuite(open));
    describe("secrets", () => secretSuite(open));
    describe("claiming", () => claimSuite(open));
    describe("what becomes of deliveries", () => deliveryStorySuite(open));
    describe("finishing", () => finishSuite(open));
    describe("listing and retrying deliveries", () => deliveryListSuite(open));
    describe("deliveries of pull subscriptions", () => pullSuite(open));
    describe("attempts of a subscription", () => attemptSuite(open));
    describe("the backlog", () => backlogSuite(open));
    describe("retention", () => retentionSuite(open));
    describe("replaying", () => replaySuite(open));
    describe("events about evreg itself", () => serviceEventSuite(open));
    describe("who changed what", () => auditSuite(open));
    describe("figures over time", () => statsSuite(open));
    describe("tokens", () => tokenSuite(open));
    describe("concurrency", () => concurrencySuite(openOwn));
  });
}
