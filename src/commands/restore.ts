import { Flags } from "@oclif/core";
import { ConfigCommand } from "../cli/base-command.ts";
import { textArg } from "../cli/flags.ts";
import { chunksOf, openInput } from "../cli/io/input.ts";
import { exitOnSignal, removeUntilGone } from "../cli/io/interruption.ts";
import { note } from "../cli/io/output.ts";
import type { Column } from "../cli/io/table.ts";
import { escapeControl } from "../cli/io/text.ts";
import { nextCommand, setTarget, serveCommand } from "../cli/target/next-command.ts";
import { readSettings } from "../cli/target/place.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { encryptionKeys } from "../config/values.ts";
import { byteCount } from "../domain/formats.ts";

export default class Restore extends ConfigCommand {
  static override usage = "restore FILE [--force]";
  static override summary = "Make a backup the data of a folder.";
  static override description = `The server on the folder must be stopped. The backup is copied beside the data and looked through before anything changes: whether evreg made it, not a newer one, whether every page and index is whole, and whether the key given opens its secrets. Data that is there is only replaced with --force, and kept beside it.

All is then as it was when the backup was made, the tokens too: those of the backup hold, and no others. Whoever has none of them makes one with tokens create and --data while no server runs. The token file of the folder, if its token is not among them, is kept beside. Deliveries that were unfinished then are sent by the next start, some of them again; how many is told, and subscriptions that are paused before the start hold theirs. Events published since are gone. Their numbers are not given to new ones, which a receiver that remembers them would take for repeats: numbers go on far beyond, by a million for each second since the backup was made.`;
  static override examples = [
    { description: "Into a new folder", command: "<%= config.bin %> restore evreg.db --data /var/lib/evreg" },
    {
      description: "In the place of what is there",
      command: "<%= config.bin %> restore evreg.db --data /var/lib/evreg --force",
    },
    { description: "From a pipe", command: "zstd -dc evreg.db.zst | <%= config.bin %> restore -" },
  ];
  static override args = { file: textArg("A file that evreg backup wrote, or - for stdin.") };
  static override flags = {
    force: Flags.boolean({ summary: "Replace the data that is there, and keep it beside." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Restore);
    const { config } = await readSettings(flags);
    setTarget(flags);
    const { loadRestore } = await import("../app/server.ts");
    const { mustBeBackup, restore } = await loadRestore();
    if (args.file !== "-") mustBeBackup(args.file, config.data);
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
    const data = await exitOnSignal(act, () => unfinished.forEach(removeUntilGone)).finally(() =>
      // It may have been refused before any of it was read.
      stream.destroy(),
    );
    await this.outputFor(flags).record({ data }, COLUMNS);
    if (config.auth.mode === "token") note(escapeControl(tokensNote(data)));
    for (const line of nextNotes(data)) note(line);
    note(`Start it with: ${serveCommand()}`);
    return EXIT.done;
  }
}

/** Which tokens hold now, and how to get one: while a server is up, only whoever has one can make another. */
function tokensNote({ tokens, token_file: file, token_file_kept: kept }: Shown): string {
  const aside =
    kept === null
      ? ""
      : ` The one in the file token is not one of them; it is in ${kept} now, with what it was for.`;
  if (tokens === 0) return `The backup has no tokens; the first start makes one.${aside}`;
  const next =
    file === null
      ? `To make another, before the start: ${nextCommand("tokens create NAME --scope admin")}`
      : `One of them is in ${file}.`;
  return `The tokens that hold are those of the backup.${aside} ${next}`;
}

const MOST_NAMED = 5;

/** What the next start will do with the data that its owner may not want, or may take for a mistake. */
function nextNotes(restored: Shown): string[] {
  const { waiting_deliveries: waiting, last_event: last, next_event: next } = restored;
  const damaged = restored.damaged_events;
  const deliveries =
    waiting === 1
      ? "1 delivery waits; the server sends it when it starts, even if it was delivered"
      : `${waiting.toLocaleString("en")} deliveries wait; the server sends them when it starts, even those that were delivered`;
  const pause = nextCommand("subscriptions update ID --no-active");
  return [
    ...(damaged.length === 0
      ? []
      : [
          `Warning: ${damaged.length === 1 ? "1 event of the backup is" : `${damaged.length} events of the backup are`} damaged, and will be neither shown nor sent: ${damaged.slice(0, MOST_NAMED).join(", ")}${damaged.length > MOST_NAMED ? " and more" : ""}. An older backup may have them whole.`,
        ]),
    ...(waiting === 0
      ? []
      : [`${deliveries} since the backup. To hold them, pause their subscriptions before: ${pause}`]),
    ...(next <= last + 1
      ? []
      : [
          "Numbers of events and deliveries go on far beyond the last ones, so that none is given out twice; they may pass 32 bits.",
        ]),
  ];
}

interface Shown {
  readonly file: string;
  readonly bytes: number;
  readonly form: number;
  readonly latest: number;
  readonly actions: number;
  readonly subscriptions: number;
  readonly last_event: number;
  readonly last_event_at: string | null;
  readonly next_event: number;
  readonly waiting_deliveries: number;
  readonly damaged_events: readonly number[];
  readonly tokens: number;
  readonly kept: string | null;
  readonly token_file: string | null;
  readonly token_file_kept: string | null;
}

const COLUMNS: readonly Column<Shown>[] = [
  { title: "File", value: ({ file }) => file, block: true },
  { title: "Size", value: ({ bytes }) => byteCount(bytes) },
  {
    title: "Form",
    value: ({ form, latest }) => (form === latest ? form : `${form}; the next start brings it to ${latest}`),
  },
  { title: "Actions", value: ({ actions }) => actions },
  { title: "Subscriptions", value: ({ subscriptions }) => subscriptions },
  {
    title: "Last event",
    value: ({ last_event: id, last_event_at: at }) =>
      id === 0 ? "none" : `${id}${at === null ? "" : ` (${at})`}`,
  },
  { title: "Next event", value: ({ next_event: id }) => id },
  { title: "Waiting deliveries", value: ({ waiting_deliveries: count }) => count },
  { title: "Tokens", value: ({ tokens }) => tokens },
  { title: "Before", value: ({ kept }) => kept ?? undefined, block: true },
];
