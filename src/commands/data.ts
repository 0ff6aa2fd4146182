import { Flags } from "@oclif/core";
import { existsSync } from "node:fs";
import type { loadMigrations, loadMove, loadRestore } from "../app/server.ts";
import { BaseCommand, ConfigCommand, TargetCommand, examples } from "../cli/base-command.ts";
import { acceptLossFlag, commonFlags, optionalArg, outputFlags, textArg, textFlag } from "../cli/flags.ts";
import { assertReplaceable, writeBackup } from "../cli/io/files.ts";
import { chunksOf, openInput } from "../cli/io/input.ts";
import { exitOnSignal, interruption, removeUntilGone } from "../cli/io/interruption.ts";
import { note, stderrLogger, writeOut } from "../cli/io/output.ts";
import { progressBar, withProgress } from "../cli/io/progress.ts";
import type { Column } from "../cli/io/table.ts";
import { counted, countedAre, escapeControl, flagWords, someOf } from "../cli/io/text.ts";
import { nextCommand, plainCommand, serveCommand } from "../cli/target/next-command.ts";
import { mustBeInFolder, readSettings } from "../cli/target/target.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";
import { encryptionKeys } from "../config/values.ts";
import { EvregError } from "../domain/error.ts";
import { byteCount } from "../domain/formats.ts";
import type { Backup as Copied } from "../domain/operations.ts";
import { linesOf, titled } from "../cli/views/view.ts";
import { tokenFileOf } from "../runtime/find-server.ts";

export class BackupCommand extends TargetCommand {
  static override summary = "Copy all data into a file while the server runs.";
  static override description = `Everything that was acknowledged before is in the copy. Publishing and delivering go on meanwhile. The server first makes the copy beside its data, so its disk needs space for a second data file. A server makes one backup at a time.

The file is checked before it gets its name, so a file of that name is complete. It holds everything, so only its owner may read it (mode 0600). The secrets of subscriptions are in it as they are stored: encrypted only where EVREG_ENCRYPTION_KEY is set, and then the backup cannot be used without that key. evreg restore puts it in place.`;
  static override examples = examples({
    "Into a file named by the time": "evreg backup",
    "Into this file": "evreg backup /var/backups/evreg.db --force",
    "Compressed, on another machine": "evreg backup - | zstd | ssh vault 'cat > evreg.db.zst'",
  });
  static override args = {
    file: optionalArg("The file to write, or - for stdout; evreg-backup-<time>.db when left out."),
  };
  static override flags = {
    force: Flags.boolean({ summary: "Replace a file that is there." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(BackupCommand);
    const path = args.file ?? `evreg-backup-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}.db`;
    if (path === "-") {
      if (process.stdout.isTTY) throw usageError("A backup is no text: name a file, or send it into a pipe.");
      if (this.outputFor(flags).format !== "table")
        throw usageError("With - the output is the backup itself.");
    } else assertReplaceable(path, { force: flags.force });
    const signal = interruption();
    try {
      return await this.withTarget(flags, async (evreg, { location: where }) => {
        if (process.stderr.isTTY) note("Copying the data, beside it…");
        const backup = await evreg.backup(signal);
        try {
          if (path === "-") await toStdout(backup, signal);
          else {
            const data = await toFile(path, backup, { from: where, force: flags.force, signal });
            await this.outputFor(flags).record({ data }, BACKUP_RECORD);
          }
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
    for await (const piece of withProgress(backup, signal)) await writeOut(piece);
  } catch (error) {
    // Elsewhere a reader that has had enough is no failure; half a backup is one.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
    const message = "Whoever read the backup left before its end. Look at the command behind the pipe.";
    throw new EvregError("unavailable", message, {}, { cause: error });
  }
  note(`${byteCount(bytes)}, SHA-256 ${sha256}. It was not looked through: evreg restore does that.`);
}

/** @param options `from`: where the data is. The copy has the right digest, so damage is damage there. */
async function toFile(
  path: string,
  backup: Copied,
  { from, force, signal }: { from: string; force: boolean; signal: AbortSignal },
) {
  const { loadFileChecks } = await import("../app/server.ts");
  const { fileTask } = await loadFileChecks();
  const check = (part: string) =>
    fileTask("examineFile", part, { name: `The data at ${escapeControl(from)}` });
  const facts = await writeBackup(path, backup, { force, check, signal });
  const damaged = facts.damaged_events;
  if (damaged.length > 0) {
    note(
      `Warning: the data is damaged, and so is the backup: ${countedAre(damaged.length, "event")} not as published: ${someOf(damaged)}. Keep the backups from before.`,
    );
  }
  return { file: path, ...facts, sha256: backup.sha256 };
}

type Named = Pick<Restored, "bytes" | "last_event" | "last_event_at">;

/** What a backup and the data that it becomes have in common. */
const CONTENTS = { actions: "Actions", subscriptions: "Subscriptions", last_event: "Last event" };

const SHOWN_FILE = {
  bytes: ({ bytes }: Named) => byteCount(bytes),
  last_event: ({ last_event: id, last_event_at: at }: Named) =>
    id === 0 ? "none" : `${id}${at === null ? "" : ` (${at})`}`,
};

const BACKUP_RECORD = linesOf<Awaited<ReturnType<typeof toFile>>>(
  titled({ file: "File", bytes: "Size", sha256: "SHA-256", ...CONTENTS, encrypted: "Secrets" }),
  { ...SHOWN_FILE, encrypted: ({ encrypted }) => (encrypted ? "encrypted" : "not encrypted") },
);

export class Restore extends ConfigCommand {
  static override summary = "Replace the data of a folder by a backup.";
  static override description = `The server on the folder must be stopped. The backup is copied beside the data and looked through before anything changes: whether evreg made it, not a newer one, whether every page and index is whole, and whether the key given opens its secrets. Data that is there is only replaced with --force, and kept beside it.

Everything is then as it was when the backup was made, the tokens too: only those of the backup are valid. Without one of them, make one with tokens create and --data while no server runs. One in the file token that is not among them is refused. The next start sends the deliveries that were unfinished, some of them again; restore says how many. To hold those of a subscription, pause it before the start. Events published since the backup are gone. Their numbers are not used again, because a receiver would take new events for repeats: numbers continue far beyond, at a million for each second since 2026 began.`;
  static override examples = examples({
    "Into a new folder": "evreg restore evreg.db --data /var/lib/evreg",
    "In the place of what is there": "evreg restore evreg.db --data /var/lib/evreg --force",
    "From a pipe": "zstd -dc evreg.db.zst | evreg restore -",
  });
  static override args = { file: textArg("A file that evreg backup wrote, or - for stdin.") };
  static override flags = {
    force: Flags.boolean({ summary: "Replace the data that is there, and keep it beside." }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Restore);
    const { config } = await readSettings(flags);
    mustBeInFolder(config, "To restore a database, use pg_restore, with the server stopped.");
    const app = await import("../app/server.ts");
    const { mustBeBackup, restore } = await app.loadRestore();
    if (args.file !== "-") mustBeBackup(args.file);
    const { stream } = await openInput(args.file);
    const unfinished: string[] = [];
    const act = () =>
      restore({
        folder: config.data,
        name: args.file === "-" ? "The backup" : args.file,
        content: chunksOf(stream, args.file),
        encryption: encryptionKeys(config.encryption),
        force: flags.force,
        nowMs: Date.now(),
        onUnfinished: (path) => unfinished.push(path),
      });
    // A refused backup may not have been read to its end.
    const data = await exitOnSignal(act, () => unfinished.forEach(removeUntilGone)).finally(() =>
      stream.destroy(),
    );
    await this.outputFor(flags).record({ data }, RESTORE_RECORD);
    if (config.auth.mode === "token") note(escapeControl(tokensNote(data, config.data)));
    for (const line of nextNotes(data)) note(line);
    const isForDevelopment = config.auth.mode === "token" && data.tokens === 0;
    note(`Start it with: ${serveCommand(isForDevelopment ? " --dev" : "")}`);
  }
}

/** Which tokens hold now, and how to get one: while a server is up, only whoever has one can make another. */
function tokensNote({ tokens }: Restored, folder: string): string {
  if (tokens === 0)
    return "The backup has no tokens, as that of a server with --dev; a start without it makes one.";
  const here =
    tokenFileOf(folder) === undefined
      ? "none of which is in this folder"
      : "so the one in the file token may not";
  return `The tokens that hold are those of the backup, ${here}. To make another, before the start: ${nextCommand("tokens create NAME --scope admin")}`;
}

/** What the next start will do with the data that its owner may not want, or may take for a mistake. */
function nextNotes(restored: Restored): string[] {
  const {
    waiting_deliveries: waiting,
    last_event: last,
    next_event: next,
    damaged_events: damaged,
  } = restored;
  const notes: string[] = [];
  if (damaged.length > 0) {
    const events = `${counted(damaged.length, "event")} of the backup ${damaged.length === 1 ? "is" : "are"}`;
    notes.push(
      `Warning: ${events} damaged, and will be neither shown nor sent: ${someOf(damaged)}. An older backup may have them whole.`,
    );
  }
  if (waiting > 0) {
    const deliveries =
      waiting === 1
        ? "1 delivery waits; the server sends it when it starts, even if it was delivered"
        : `${waiting.toLocaleString("en")} deliveries wait; the server sends them when it starts, even those that were delivered`;
    const pause = nextCommand("subscriptions update ID --no-active");
    notes.push(`${deliveries} since the backup. To hold them, pause their subscriptions before: ${pause}`);
  }
  if (next > last + 1) {
    notes.push(
      "Numbers of events and deliveries go on far beyond the last ones, so that none is given out twice; they may pass 32 bits.",
    );
  }
  return notes;
}

type Restored = Awaited<ReturnType<Awaited<ReturnType<typeof loadRestore>>["restore"]>>;

const RESTORE_RECORD = linesOf<Restored>(
  titled({
    file: "File",
    bytes: "Size",
    form: "Form",
    ...CONTENTS,
    next_event: "Next event",
    waiting_deliveries: "Waiting deliveries",
    tokens: "Tokens",
    kept: "Before",
  }),
  {
    ...SHOWN_FILE,
    form: ({ form, latest }) => (form === latest ? form : `${form}; the next start brings it to ${latest}`),
  },
);

export class Migrate extends ConfigCommand {
  static override summary = "Bring the data file to the form that this version of evreg needs.";
  static override description =
    "Each start of a server does the same, so this is for doing it, or looking at it, before one. No other command does: on a file of an older form they end and name this one, as an older evreg could not open the file afterwards. The file as it was is kept beside the new one. A file of a newer evreg is refused and left as it is.";
  static override examples = examples({
    "What is, and what is still to do": "evreg migrate --status",
    "What a migration would do": "evreg migrate --dry-run",
    "Do it, with the server stopped": "evreg migrate --data /var/lib/evreg",
  });
  static override flags = {
    status: Flags.boolean({
      summary: "Only show the form of the file; a server may be running.",
      exclusive: ["dry-run", "accept-loss"],
    }),
    "dry-run": Flags.boolean({
      summary: "Only show what would be done.",
      exclusive: ["accept-loss"],
    }),
    "accept-loss": acceptLossFlag,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Migrate);
    const { config } = await readSettings(flags);
    mustBeInFolder(config, "The tables of a database are made by the first start of a server on it.");
    if (flags.status && !existsSync(config.data)) {
      throw new EvregError(
        "not_found",
        `There is no data folder ${config.data}. Name another with --data; a server that is started on it makes one.`,
      );
    }
    const app = await import("../app/server.ts");
    const { inspectMigrations, migrate } = await app.loadMigrations();
    const encryption = encryptionKeys(config.encryption);
    const data = flags.status
      ? inspectMigrations(config.data)
      : await migrate(config.data, {
          dryRun: flags["dry-run"],
          acceptsLoss: flags["accept-loss"],
          encryption,
          logger: stderrLogger,
        });
    await this.outputFor(flags).record({ data }, MIGRATION_RECORD);
  }
}

type MigrationShown = Awaited<ReturnType<Awaited<ReturnType<typeof loadMigrations>>["migrate"]>>;

const MIGRATION_RECORD: readonly Column<MigrationShown>[] = [
  { title: "File", value: ({ file, exists }) => (exists ? file : `${file} (not there yet)`) },
  {
    title: "Form",
    value: ({ current, latest }) =>
      current === latest ? `${latest}, the latest` : `${current}, still to be brought to ${latest}`,
    color: ({ current, latest }) => (current === latest ? "green" : "yellow"),
  },
  {
    title: "Room",
    value: ({ room }) =>
      room &&
      `it takes up to ${byteCount(room.needed_bytes)} on the disk; ${byteCount(room.free_bytes)} are free`,
    color: ({ room }) => (room && room.free_bytes < room.needed_bytes ? "red" : undefined),
  },
  { title: "Copy", value: ({ copy }) => copy },
];

type MoveOptions = Parameters<Awaited<ReturnType<typeof loadMove>>["move"]>[0];
type DataPlace = MoveOptions["from"];

export class Move extends BaseCommand {
  static override summary = "Move all data from a folder into a PostgreSQL database, or back.";
  static override description = `Everything keeps its number, and the data their data_id. Each part is compared by its checksum in both places, and copied where that differs. So a move that was cut off is run again and goes on where it was, and one that ends well has shown that all is the same. Secrets stay as they are stored: the new place needs the same key.

To stop publishing for a short time only, move twice: first while the server runs, from a backup of its folder or from its database; then, once it is stopped, from the folder or database itself. That second move copies what has changed since, says how long it took, and ends the move: only then a server can open the new place, and none opens the old one any more. What was there is kept, under another name.`;
  static override examples = examples({
    "What a server has, into a database, while it runs":
      "evreg backup evreg.db && evreg move --from evreg.db --to postgres://evreg@localhost/evreg",
    "The rest, once it is stopped": "evreg move --from .evreg --to postgres://evreg@localhost/evreg",
    "Back, from the database of EVREG_DATABASE_URL": "evreg move --to .evreg",
  });
  static override baseFlags = { config: commonFlags.config, ...outputFlags };
  static override flags = {
    from: textFlag(
      "Where the data are: a data folder, a backup, or the address of a database. Left out: database.url.",
      "FOLDER|FILE|URL",
    ),
    to: textFlag(
      "Where they are to be: a data folder, or the address of a database. Left out: database.url.",
      "FOLDER|URL",
    ),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Move);
    const { config } = await readSettings({ config: flags.config });
    const placeOf = (flag: "from" | "to"): DataPlace => {
      const place = flags[flag] ?? config.database.url;
      if (place !== undefined) return namedPlace(`--${flag}`, place);
      throw usageError(`--${flag}: name a folder, or the address of a database in EVREG_DATABASE_URL.`);
    };
    const [from, to] = [placeOf("from"), placeOf("to")];
    if ((from.url === undefined) === (to.url === undefined)) {
      throw usageError(
        "A move leads from a data folder to a database, or back. For a folder there are backup and restore, for a database its own tools.",
      );
    }
    const { move } = await (await import("../app/server.ts")).loadMove();
    const signal = interruption();
    const bar = await progressBar("{bar} {percentage}% | {same} of {rows} rows are in both places", {
      same: 0,
      rows: 0,
    });
    try {
      const onProgress: MoveOptions["onProgress"] = ({ same, rows }) =>
        bar.update(same, Math.max(rows, 1), {
          same: same.toLocaleString("en"),
          rows: rows.toLocaleString("en"),
        });
      const report = await move({ from, to, signal, onProgress });
      bar.stop();
      const data = { from: from.place, to: to.place, ...report };
      await this.outputFor(flags).record({ data }, MOVE_RECORD);
      for (const line of movedNotes(data, to)) note(escapeControl(line));
      return EXIT.done;
    } catch (error) {
      bar.stop();
      if (!signal.aborted) throw error;
      note("Interrupted. The same command goes on from here.");
      return EXIT.interrupted;
    }
  }
}

function namedPlace(flag: string, text: string): DataPlace {
  if (!/^postgres(?:ql)?:/.test(text)) return { place: text };
  if (!URL.canParse(text))
    throw usageError(`${flag}: must be an address such as postgres://USER@HOST/DATABASE.`);
  const shown = new URL(text);
  // A password may be in either.
  shown.password = "";
  shown.search = "";
  return { place: shown.href, url: text };
}

type Moved = Awaited<ReturnType<Awaited<ReturnType<typeof loadMove>>["move"]>> & {
  readonly from: string;
  readonly to: string;
};

function secondsText(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function movedNotes({ from, to, took_ms: tookMs, ...moved }: Moved, { url }: DataPlace): string[] {
  const { finished, kept } = moved;
  if (!finished) {
    const own = url === undefined ? from : "FOLDER";
    return [
      `The move is not finished: ${to} has what was in ${from}, and no server opens it yet. Stop the server, and run: ${plainCommand(`move${flagWords({ from: own, to })}`)}. That copies what has changed since.`,
    ];
  }
  const start = url === undefined ? `serve${flagWords({ data: to })}` : `serve, with EVREG_DATABASE_URL`;
  return [
    `All data are in ${to} now. That took ${secondsText(tookMs)}, for which nothing could be published. What was in ${from} is kept as ${kept}, and no server opens it.`,
    `Start a server on them: ${plainCommand(start)}`,
  ];
}

const MOVE_RECORD = linesOf<Moved>(
  titled({
    from: "From",
    to: "To",
    finished: "Finished",
    events: "Events",
    deliveries: "Deliveries",
    rows: "Rows",
    changed: "Copied now",
    sha256: "SHA-256",
    took_ms: "Time",
    kept: "Kept as",
  }),
  {
    finished: ({ finished }) => (finished ? "yes" : "no"),
    took_ms: ({ took_ms: tookMs }) => secondsText(tookMs),
  },
);
