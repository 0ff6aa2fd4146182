import type { Backup } from "../../domain/operations.ts";
import type { Route } from "./route.ts";

/** A caller that takes no piece for so long keeps everybody else from a backup. */
const STALLED_MS = 60_000;

/** Of SQLite files, by which the registry of media types knows them. */
const MEDIA_TYPE = "application/vnd.sqlite3";

export const BACKUP_ROUTE: Route = {
  method: "GET",
  path: "/v1/backup",
  operationId: "getBackup",
  tag: "health",
  summary: "A copy of all data",
  description:
    "The data file as it is at one moment after the request: everything acknowledged before is in it, and publishing goes on meanwhile. Secrets in it are as they are kept, encrypted or not. The first byte comes when the copy is made, which takes seconds for each GB; the headers tell its length and digest, so that one that was cut off is noticed. One at a time; one that takes no more than 256 KiB in a minute is cut, and so is any when the server is stopped. HEAD is refused, as its headers are known only with the whole copy. `evreg restore` checks it and puts it in place.",
  headless: true,
  access: "token",
  scope: "admin",
  answers: {
    200: {
      description: "The data file.",
      mediaType: MEDIA_TYPE,
      schema: { type: "string", format: "binary" },
      headers: {
        "Repr-Digest": { type: "string", description: "RFC 9530: `sha-256=:<base64>:`, of the whole file." },
        "Content-Disposition": { type: "string" },
      },
    },
  },
  failures: [409],
  async handle(evreg, request, { clock, stopping }) {
    const backup = await request.untilDisconnect((signal) =>
      request.withoutIdleTimeout(() => evreg.backup(AbortSignal.any([signal, stopping]))),
    );
    const cut = (): void => request.disconnect();
    // A stop would wait for its caller, for whom a failure now is better than one when the time for stopping is over.
    stopping.addEventListener("abort", cut);
    const release = (): void => {
      stopping.removeEventListener("abort", cut);
      closeQuietly(backup);
    };
    const cutStalled = (): (() => void) => clock.setTimer(cut, STALLED_MS);
    const digest = Buffer.from(backup.sha256, "hex").toString("base64");
    return {
      status: 200,
      body: { bytes: backup.bytes, chunks: thenClosed(backup, cutStalled) },
      mediaType: MEDIA_TYPE,
      // All data leave with it.
      isLogged: true,
      headers: [
        ["repr-digest", `sha-256=:${digest}:`],
        ["content-disposition", 'attachment; filename="evreg-backup.db"'],
      ],
      // Also when nobody read it to its end.
      ...(request.nodeRequest === undefined ? {} : { release }),
    };
  },
};

/** @param watch waits for the next chunk to be taken; what it returns ends the wait */
async function* thenClosed(backup: Backup, watch: () => () => void): AsyncGenerator<Uint8Array> {
  let remaining = backup.bytes;
  let unwatch: (() => void) | undefined;
  try {
    for await (const piece of backup.content()) {
      remaining -= piece.length;
      unwatch?.();
      unwatch = watch();
      // A caller that has its last byte may ask for the next backup at once.
      if (remaining === 0) closeQuietly(backup);
      yield piece;
      if (remaining === 0) return;
    }
  } finally {
    unwatch?.();
    await backup.close();
  }
}

/** Where nobody waits for it; a reader of the content gets the error. */
function closeQuietly(backup: Backup): void {
  backup.close().catch(() => undefined);
}
