import { describe, expect, it } from "vitest";
import { actionChecksContract } from "./evreg-action-checks.ts";
import { actionEndsContract } from "./evreg-action-ends.ts";
import { actionUpdatesContract } from "./evreg-action-updates.ts";
import { actionsContract } from "./evreg-actions.ts";
import { backupsContract } from "./evreg-backups.ts";
import { batchContract } from "./evreg-batch.ts";
import { deliveriesContract } from "./evreg-deliveries.ts";
import { eventListsContract } from "./evreg-event-lists.ts";
import { eventSearchContract } from "./evreg-event-search.ts";
import { filtersContract } from "./evreg-filters.ts";
import { missingContract } from "./evreg-missing.ts";
import { patternsContract } from "./evreg-patterns.ts";
import { publishContract } from "./evreg-publish.ts";
import { pullContract } from "./evreg-pull.ts";
import { secretsContract } from "./evreg-secrets.ts";
import { refusalsContract } from "./evreg-refusals.ts";
import { replaysContract } from "./evreg-replays.ts";
import { scopesContract } from "./evreg-scopes.ts";
import { serviceEventsContract } from "./evreg-service-events.ts";
import { settingsContract } from "./evreg-settings.ts";
import { signInContract } from "./evreg-sign-in.ts";
import { statsContract } from "./evreg-stats.ts";
import { streamContract } from "./evreg-stream.ts";
import { subscriptionsContract } from "./evreg-subscriptions.ts";
import { attentionContract } from "./evreg-attention.ts";
import { auditContract } from "./evreg-audit.ts";
import { tokensContract } from "./evreg-tokens.ts";
import { refusal, useEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

// Everything the port promises, in two parts. Over HTTP both hold on a data file; in a process of its own the first does on a data
// file, and the second on a database. `open` makes a new, empty evreg each time; its payload limit is `PAYLOAD_BYTES`, and no engine
// sends its deliveries.

/** The promises whose statements every engine must run: the store's own contract has what users do not see at once. */
export function evregEngineContract(open: OpenEvreg): void {
  eventListsContract(open);
  eventSearchContract(open);
  patternsContract(open);
  deliveriesContract(open);
  attentionContract(open);
  statsContract(open);
  actionUpdatesContract(open);
  actionEndsContract(open);
  subscriptionsContract(open);
  pullContract(open);
  replaysContract(open);
  serviceEventsContract(open);
  auditContract(open);
  signInContract(open);
  publishContract(open);
  batchContract(open);
  streamContract(open);
}

/** The promises that no engine has a part of its own in. */
export function evregServiceContract(open: OpenEvreg): void {
  actionsContract(open);
  actionChecksContract(open);
  settingsContract(open);
  filtersContract(open);
  secretsContract(open);
  tokensContract(open);
  scopesContract(open);
  refusalsContract(open);
  missingContract(open);
  backupsContract(open);

  describe("evreg as a whole", () => {
    const under = useEvreg(open);

    it("reports its health", async () => {
      const { data } = await under.evreg.health();
      expect(data).toMatchObject({ status: "ok", store: "ok", engine: "running" });
      expect(data.version).toMatch(/^\d+\.\d+\.\d+/);
      expect(data.instance).not.toBe("");
      expect(data).not.toHaveProperty("reason");
    });

    it("reports its metrics to callers who may read everything", async () => {
      const text = await (await under.as(["read"])).metrics();
      expect(text).toContain("# TYPE evreg_events_published_total counter\n");
      for (const scopes of [["read:crm"], ["publish", "write"], ["admin:crm"]]) {
        await refusal((await under.as(scopes)).metrics(), "forbidden");
      }
    });

    it("diagnoses itself", async () => {
      const { data, meta } = await under.evreg.doctor();
      expect(meta).toEqual({ time: "2026-01-01T00:00:00.000Z" });
      expect(data.map(({ check }) => check)).toEqual(
        expect.arrayContaining([
          "server",
          "folder",
          "disk",
          "size",
          "clock",
          "tokens",
          "handlers",
          "backlog",
        ]),
      );
      for (const { status, remedy } of data) expect(remedy === null).toBe(status === "ok");
    });

    it("lists the servers on its data", async () => {
      const { data, meta } = await under.evreg.nodes();
      expect(data).toMatchObject([{ pid: process.pid, shards: meta.shards, leaving: 0 }]);
    });

    it("can be closed twice", async () => {
      await under.evreg.close();
      await expect(under.evreg.close()).resolves.toBeUndefined();
    });
  });
}
