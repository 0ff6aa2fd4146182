import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Backup } from "../../src/domain/operations.ts";
import { fileTask } from "../../src/store/libsql/file-task.ts";
import { temporaryFolder } from "../support/program.ts";
import { newAction, type OpenEvreg, publish, subscribe, useSharedEvreg } from "./harness.ts";

async function bytesOf(backup: Backup): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of backup.content()) pieces.push(piece);
  return Buffer.concat(pieces);
}

export function backupsContract(open: OpenEvreg): void {
  describe("backups", () => {
    const under = useSharedEvreg(open, async ({ evreg }) => {
      await evreg.actions.create(newAction());
      await subscribe(evreg);
      await publish(evreg);
    });

    it("contain everything, in one data file", async () => {
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
  });
}
