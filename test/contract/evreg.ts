import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Backup } from "../../src/domain/operations.ts";
import { fileTask } from "../../src/store/libsql/file-task.ts";
import { temporaryFolder } from "../support/program.ts";
import { actionEndsContract } from "./evreg-action-ends.ts";
import { actionUpdatesContract } from "./evreg-action-updates.ts";
import { actionsContract } from "./evreg-actions.ts";
import { batchContract } from "./evreg-batch.ts";
import { deliveriesContract } from "./evreg-deliveries.ts";
import { eventListsContract } from "./evreg-event-lists.ts";
import { patternsContract } from "./evreg-patterns.ts";
import { publishContract } from "./evreg-publish.ts";
import { pullContract } from "./evreg-pull.ts";
import { refusalsContract } from "./evreg-refusals.ts";
import { scopesContract } from "./evreg-scopes.ts";
import { settingsContract } from "./evreg-settings.ts";
import { streamContract } from "./evreg-stream.ts";
import { subscriptionsContract } from "./evreg-subscriptions.ts";
import { attentionContract } from "./evreg-attention.ts";
import { auditContract } from "./evreg-audit.ts";
import { tokensContract } from "./evreg-tokens.ts";
import { newAction, type OpenEvreg, publish, refusal, subscribe, useEvreg } from "./harness.ts";

async function bytesOf(backup: Backup): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of backup.content()) pieces.push(piece);
  return Buffer.concat(pieces);
}

// Everything the port promises, in two parts. Over HTTP both hold on a data file; in a process of its own the first does on a data
// file, and the second on a database. `open` makes a new, empty evreg each time; its payload limit is `PAYLOAD_BYTES`, and no engine
// sends its deliveries.

/** The promises whose statements every engine must run: the store's own contract has what users do not see at once. */
export function evregEngineContract(open: OpenEvreg): void {
  eventListsContract(open);
  patternsContract(open);
  deliveriesContract(open);
  attentionContract(open);
  actionUpdatesContract(open);
  actionEndsContract(open);
  subscriptionsContract(open);
  pullContract(open);
  auditContract(open);
  publishContract(open);
  batchContract(open);
  streamContract(open);
}

/** The promises that no engine has a part of its own in. */
export function evregServiceContract(open: OpenEvreg): void {
  actionsContract(open);
  settingsContract(open);
  tokensContract(open);
  scopesContract(open);
  refusalsContract(open);

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

    it("makes a backup that has everything, in one data file", async () => {
      await under.evreg.actions.create(newAction());
      await subscribe(under.evreg);
      const before = await publish(under.evreg);
      const backup = await under.evreg.backup();
      const bytes = await bytesOf(backup);
      await backup.close();
      await backup.close();
      expect(bytes.length).toBe(backup.bytes);
      expect(createHash("sha256").update(bytes).digest("hex")).toBe(backup.sha256);
      const folder = temporaryFolder();
      const path = `${folder.path}/copy.db`;
      writeFileSync(path, bytes);
      expect(await fileTask("examineFile", path)).toMatchObject({
        subscriptions: 1,
        last_event: before.rowid,
        last_event_at: before.timestamped,
        encrypted: false,
      });
      folder.remove();
    });

    it("can be closed twice", async () => {
      await under.evreg.close();
      await expect(under.evreg.close()).resolves.toBeUndefined();
    });
  });
}
