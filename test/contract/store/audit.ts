import { expect, it } from "vitest";
import type { AuditEntry } from "../../../src/domain/audit.ts";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

const ADA = { name: "ada", tokenId: 7, address: "10.0.0.7" };

/** Who changed what, kept by the calls that make the changes. */
export function auditSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  const entries = (query: object = {}): Promise<readonly AuditEntry[]> =>
    on.store.audit.list({ limit: 50, ...query });

  async function changeAll(): Promise<void> {
    const { catalog } = on.store;
    const input = { action: "user.created", application: "crm", schemata: { type: "object" } } as const;
    await catalog.createAction(input, NOW, ADA);
    const record = { application: "mailer", subscription: "welcome", action: "user.created", maxRetries: 5 };
    const handler = "https://mailer.example/";
    const created = await catalog.createSubscription(
      { ...record, handler, active: true, secret: "s" },
      NOW + 1,
      ADA,
    );
    const patch = { maxRetries: 3, bearer: { kind: "own", token: "a-secret-value" } } as const;
    await catalog.updateSubscription(created.rowid, patch, NOW + 2, ADA);
    await catalog.noteSecretUse(created.rowid, "other/consumer", NOW + 3, ADA);
    await catalog.deleteSubscription(created.rowid, NOW + 4, ADA);
  }

  it("is listed by time and from an entry on, and removed when it is old", async () => {
    await changeAll();
    const all = await entries();
    expect(await entries({ fromMs: NOW + 1, toMs: NOW + 3 })).toEqual([all[2], all[3]]);
    expect(await entries({ limit: 2, after: all[1]!.rowid })).toEqual([all[2], all[3]]);
    let removed = 0;
    for (let some = -1; some !== 0;) removed += some = await on.store.audit.removeExpired(NOW + 3);
    expect(removed).toBe(3);
    expect(await entries()).toEqual(all.slice(0, 2));
  });
}
