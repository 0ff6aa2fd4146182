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

    it("can be made again after one that was not read to its end", async () => {
      const first = await under.evreg.backup();
      await first.close();
      const second = await freed(() => under.evreg.backup());
      const content = second.content()[Symbol.asyncIterator]();
      await content.next();
      await content.return?.();
      await second.close();
      await (await freed(() => under.evreg.backup())).close();
    });

    it("can be aborted", async () => {
      const given = AbortSignal.abort(new Error("enough"));
      await expect(under.evreg.backup(given)).rejects.toThrow();
      await (await freed(() => under.evreg.backup())).close();
    });
  });
}

/** One at a time; and a server hears a moment later that its caller has gone. */
async function freed(make: () => Promise<Backup>): Promise<Backup> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      if ((error as { code?: string }).code !== "conflict") throw error;
    }
  }
}
