import { describe, it } from "vitest";
import type { Evreg } from "../../src/evreg.ts";
import { ANY_OBJECT, newAction, newEvent, type OpenEvreg, refusal, useSharedEvreg } from "./harness.ts";

type Ask = (evreg: Evreg, which: never) => Promise<unknown>;

const MISSING = 999;
const REPLAY = { from: "2026-01-01T00:00:00.000Z", status: "all" } as const;

/** What is asked of a record by its rowid, which there is none with. */
const OF_A_ROWID: readonly Ask[] = [
  (evreg, id) => evreg.actions.revision("user.created", id),
  (evreg, id) => evreg.events.get(id),
  (evreg, id) => evreg.events.deliveries(id),
  (evreg, id) => evreg.subscriptions.get(id),
  (evreg, id) => evreg.subscriptions.update(id, { active: true }),
  (evreg, id) => evreg.subscriptions.delete(id),
  (evreg, id) => evreg.subscriptions.rotateSecret(id),
  (evreg, id) => evreg.subscriptions.test(id, newEvent()),
  (evreg, id) => evreg.subscriptions.claim(id),
  (evreg, id) => evreg.subscriptions.attempts(id),
  (evreg, id) => evreg.deliveries.get(id),
  (evreg, id) => evreg.deliveries.retry(id),
  (evreg, id) => evreg.deliveries.skip(id),
  (evreg, id) => evreg.replays.get(id),
  (evreg, id) => evreg.replays.cancel(id),
  (evreg, id) => evreg.replays.start(id, REPLAY),
  (evreg, id) => evreg.replays.count(id, REPLAY),
  (evreg, id) => evreg.tokens.revoke(id),
];

/** What is asked of an action by its name. */
const OF_A_NAME: readonly Ask[] = [
  (evreg, name) => evreg.actions.get(name),
  (evreg, name) => evreg.actions.update(name, { schemata: ANY_OBJECT }),
  (evreg, name) => evreg.actions.check(name, { schemata: ANY_OBJECT }),
  (evreg, name) => evreg.actions.validate(name, newEvent().payload),
  (evreg, name) => evreg.actions.revision(name, 1),
  (evreg, name) => evreg.actions.revisions(name),
  (evreg, name) => evreg.actions.sample(name),
  (evreg, name) => evreg.actions.types(name),
];

export function missingContract(open: OpenEvreg): void {
  describe("what is asked of a record", () => {
    const under = useSharedEvreg(open, ({ evreg }) => evreg.actions.create(newAction()));

    it("is refused for a rowid that is none", async () => {
      for (const ask of OF_A_ROWID) {
        for (const rowid of [0, -1, 1.5, Number.NaN, 2 ** 53])
          await refusal(ask(under.evreg, rowid as never), "malformed");
      }
    });

    it("finds nothing where the record is not there", async () => {
      for (const ask of OF_A_ROWID) await refusal(ask(under.evreg, MISSING as never), "not_found");
      for (const ask of OF_A_NAME) {
        for (const name of ["nothing.here", "with space", "a/b", "ä", "%2e"])
          await refusal(ask(under.evreg, name as never), "not_found");
      }
      await refusal(under.evreg.actions.get("."), "not_found");
    });
  });
}
