import { Flags } from "@oclif/core";
import { TargetCommand } from "../cli/base-command.ts";
import { optionalArg } from "../cli/flags.ts";
import { assertWritable, writeBackup } from "../cli/io/files.ts";
import { interruption } from "../cli/io/interruption.ts";
import { note, writeBytes } from "../cli/io/output.ts";
import { withProgress } from "../cli/io/progress.ts";
import type { Column } from "../cli/io/table.ts";
import { escapeControl } from "../cli/io/text.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";
import { EvregError } from "../domain/error.ts";
import { byteCount } from "../domain/formats.ts";
import type { Backup as Copied } from "../domain/operations.ts";

export default class Backup extends TargetCommand {
  static override usage = "backup [FILE] [--force]";
  static override summary = "Copy all data into a file, while the server goes on.";
  static override description = `Everything that was acknowledged before is in the copy; publishing and delivering go on meanwhile. The server makes it beside its data first, so its disk needs room for a second data file. One server makes one backup at a time.

The file is looked through before it gets its name: what is there by the end is whole. It holds everything, so only its owner may read it (mode 0600); the secrets of subscriptions are in it as they are kept, encrypted only where EVREG_ENCRYPTION_KEY is set, and then it is of no use without that key. evreg restore puts it in place.`;
  static override examples = [
    { description: "Into a file named by the time", command: "<%= config.bin %> backup" },
    { description: "Into this file", command: "<%= config.bin %> backup /var/backups/evreg.db --force" },
    {
      description: "Compressed, on another machine",
      command: "<%= config.bin %> backup - | zstd | ssh vault 'cat > evreg.db.zst'",
    },
  ];
  static override args = {
    file: optionalArg("The file to write, or - for stdout; evreg-backup-<time>.db when left out."),
  };
  static override flags = {
    force: Flags.boolean({ summary: "Replace a file that is there." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Backup);
    const path = args.file ?? `evreg-backup-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}.db`;
    if (path === "-") {
      if (process.stdout.isTTY) throw usageError("A backup is no text: name a file, or send it into a pipe.");
      if (this.outputFor(flags).format !== "table")
        throw usageError("With - the output is the backup itself.");
    } else assertWritable(path, { force: flags.force });
    const signal = interruption();
    try {
      return await this.withTarget(flags, async (evreg, { location: where }) => {
        if (process.stderr.isTTY) note("Copying the data, beside it…");
        const backup = await evreg.backup(signal);
        try {
          if (path === "-") await toStdout(backup, signal);
          else
            await this.outputFor(flags).record(
              { data: await toFile(path, backup, { from: where, force: flags.force, signal }) },
              COLUMNS,
            );
        } finally {
          await backup.close();
        }
        return EXIT.done;
      });
    } catch (error) {
      if (!signal.aborted) throw error;
      note("Interrupted: there is no backup.");
      return EXIT.interrupted;
    }
  }
}

async function toStdout(backup: Copied, signal: AbortSignal): Promise<void> {
  const { bytes, sha256 } = backup;
  try {
    for await (const piece of withProgress(backup, signal)) await writeBytes(piece);
  } catch (error) {
    // Elsewhere a reader that has had enough is no failure; half a backup is one.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
    const message = "Whoever read the backup left before its end. Look at the command behind the pipe.";
    throw new EvregError("unavailable", message, {}, { cause: error });
  }
  note(`${byteCount(bytes)}, SHA-256 ${sha256}. It was not looked through: evreg restore does that.`);
}

/** @param options `from`: where the data is that was copied; its digest was right, so damage is damage there */
async function toFile(
  path: string,
  backup: Copied,
  options: { readonly from: string; readonly force: boolean; readonly signal: AbortSignal },
): Promise<Shown> {
  const { from, force, signal } = options;
  const { loadFileChecks } = await import("../app/server.ts");
  const { checkFile } = await loadFileChecks();
  const check = (part: string) => checkFile(part, { name: `The data at ${escapeControl(from)}` });
  const { impossible, ...facts } = await writeBackup(path, backup, { force, check, signal });
  const damaged = facts.damaged_events.length;
  if (impossible.length + damaged > 0) {
    note(
      `Warning: the data is damaged, and so is the backup: ${impossible.length > 0 ? `it holds what evreg could not have written, and cannot be restored` : `${damaged === 1 ? "1 event is" : `${damaged} events are`} not as published`}. Keep the backups from before. See: ${nextCommand("doctor --deep")}`,
    );
  }
  return { file: path, ...facts, sha256: backup.sha256 };
}

interface Shown {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly actions: number;
  readonly subscriptions: number;
  readonly last_event: number;
  readonly last_event_at: string | null;
  readonly encrypted: boolean;
}

const COLUMNS: readonly Column<Shown>[] = [
  { title: "File", value: ({ file }) => file },
  { title: "Size", value: ({ bytes }) => byteCount(bytes) },
  { title: "SHA-256", value: ({ sha256 }) => sha256 },
  { title: "Actions", value: ({ actions }) => actions },
  { title: "Subscriptions", value: ({ subscriptions }) => subscriptions },
  {
    title: "Last event",
    value: ({ last_event: id, last_event_at: at }) =>
      id === 0 ? "none" : `${id}${at === null ? "" : ` (${at})`}`,
  },
  { title: "Secrets", value: ({ encrypted }) => (encrypted ? "encrypted" : "not encrypted") },
];
