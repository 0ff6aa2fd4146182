import { Flags } from "@oclif/core";
import { BaseCommand } from "../cli/base-command.ts";
import { byteCount } from "../domain/byte-count.ts";
import { EXIT } from "../cli/exit-code.ts";
import { textArg } from "../cli/flags.ts";
import { chunksOf, openInput } from "../cli/input.ts";
import { endingAtOnce, removeForGood } from "../cli/interruption.ts";
import { rememberTarget, serveCommand } from "../cli/next-command.ts";
import { note } from "../cli/output.ts";
import { readSettings } from "../cli/settings.ts";
import type { Column } from "../cli/table.ts";
import { encryptionKeys } from "../config/encryption-keys.ts";

export default class Restore extends BaseCommand {
  static override usage = "restore FILE [--force]";
  static override summary = "Make a backup the data of a folder.";
  static override description = `The server on the folder must be stopped. The backup is copied beside the data and looked through before anything changes: whether evreg made it, not a newer one, whether every page and index is whole, and whether the key given opens its secrets. Data that is there is only replaced with --force, and kept beside it.

All is then as it was when the backup was made, the tokens too. Deliveries that were unfinished then are sent by the next start, some of them again. Events published since are gone. Their numbers are not given to new ones, which a receiver that remembers them would take for repeats: numbers go on far beyond, by a million for each second since the backup was made.`;
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
    rememberTarget(flags);
    const { loadRestore } = await import("../app.ts");
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
    const data = await endingAtOnce(act, () => unfinished.forEach(removeForGood)).finally(() =>
      // It may have been refused before any of it was read.
      stream.destroy(),
    );
    await this.outputFor(flags).record({ data }, COLUMNS);
    note(`Start it with: ${serveCommand()}`);
    return EXIT.done;
  }
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
  readonly kept: string | null;
}

const COLUMNS: readonly Column<Shown>[] = [
  { title: "File", of: ({ file }) => file },
  { title: "Size", of: ({ bytes }) => byteCount(bytes) },
  {
    title: "Form",
    of: ({ form, latest }) => (form === latest ? form : `${form}; the next start brings it to ${latest}`),
  },
  { title: "Actions", of: ({ actions }) => actions },
  { title: "Subscriptions", of: ({ subscriptions }) => subscriptions },
  {
    title: "Last event",
    of: ({ last_event: id, last_event_at: at }) =>
      id === 0 ? "none" : `${id}${at === null ? "" : ` (${at})`}`,
  },
  { title: "Next event", of: ({ next_event: id }) => id },
  { title: "Before", of: ({ kept }) => kept ?? undefined },
];
