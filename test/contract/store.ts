import { describe } from "vitest";
import { attemptSuite } from "./store/attempts.ts";
import { claimSuite } from "./store/claims.ts";
import { concurrencySuite } from "./store/concurrency.ts";
import { deliveryListSuite } from "./store/delivery-list.ts";
import { deliveryStorySuite } from "./store/delivery-stories.ts";
import type { OpenOwnStore, OpenStore } from "./store/fixture.ts";
import { finishSuite } from "./store/finishes.ts";
import { identitySuite } from "./store/identity.ts";
import { idempotencySuite } from "./store/idempotency.ts";
import { recordSuite } from "./store/recording.ts";
import { retentionSuite } from "./store/retention.ts";
import { secretSuite } from "./store/secrets.ts";
import { replaySuite } from "./store/replays.ts";
import { serviceEventSuite } from "./store/service-events.ts";
import { statsSuite } from "./store/stats.ts";
import { tokenSuite } from "./store/tokens.ts";

/**
 * What every engine behind the Store port must do. What users see of it at once is in the contract of the service
 * (`evregEngineContract`), which every engine runs as well.
 * @param openOwn makes an empty store; the suite closes and removes it
 * @param open makes one for a test that does not look at how it ends
 */
export function storeContract(name: string, openOwn: OpenOwnStore, open: OpenStore = openOwn): void {
  describe(`store contract: ${name}`, () => {
    describe("the identity of the data", () => identitySuite(openOwn));
    describe("recording and reading events", () => recordSuite(open));
    describe("idempotency keys", () => idempotencySuite(open));
    describe("secrets", () => secretSuite(open));
    describe("claiming", () => claimSuite(open));
    describe("what becomes of deliveries", () => deliveryStorySuite(open));
    describe("finishing", () => finishSuite(open));
    describe("listing and retrying deliveries", () => deliveryListSuite(open));
    describe("attempts of a subscription", () => attemptSuite(open));
    describe("retention", () => retentionSuite(open));
    describe("replaying", () => replaySuite(open));
    describe("events about evreg itself", () => serviceEventSuite(open));
    describe("figures over time", () => statsSuite(open));
    describe("tokens", () => tokenSuite(open));
    describe("concurrency", () => concurrencySuite(openOwn));
  });
}
