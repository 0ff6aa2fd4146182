import { routeAt, type Route } from "./route.ts";

/** The registered type of SQLite files. */
const MEDIA_TYPE = "application/vnd.sqlite3";

export const BACKUP_ROUTE: Route = routeAt("GET /v1/backup", "getBackup", "Download a copy of all data", {
  tag: "health",
  description:
    "The data file as of one moment after the request. It has everything that was acknowledged before, and publishing goes on meanwhile. Secrets in it are encrypted or not, as in the data folder. The first byte comes once the copy is made, which takes seconds for each GB. The headers have its length and digest, to detect a download that was cut off. One backup runs at a time. It is cut off if the caller takes no more than 256 KiB in a minute, or if the server stops. `evreg restore` checks a backup and installs it.",
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
  async handle(evreg, request, { stopping }) {
    const backup = await request.untilDisconnect((signal) =>
      evreg.backup(AbortSignal.any([signal, stopping])),
    );
    const cut = (): void => request.disconnect();
    // A stop would wait for this caller, and cut it off in the end anyway.
    stopping.addEventListener("abort", cut);
    const release = (): void => {
      stopping.removeEventListener("abort", cut);
      // Who reads its content gets the error.
      backup.close().catch(() => undefined);
    };
    const digest = Buffer.from(backup.sha256, "hex").toString("base64");
    return {
      status: 200,
      body: { bytes: backup.bytes, chunks: backup.content() },
      mediaType: MEDIA_TYPE,
      headers: [
        ["repr-digest", `sha-256=:${digest}:`],
        ["content-disposition", 'attachment; filename="evreg-backup.db"'],
      ],
      // It is released even when nobody read it to its end.
      release,
    };
  },
});
