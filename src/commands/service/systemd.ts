import { Flags } from "@oclif/core";
import { resolve } from "node:path";
import { BaseCommand } from "../../cli/base-command.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { flagWords } from "../../cli/flag-words.ts";
import { given, numberFlag } from "../../cli/flags.ts";
import { note, writeOut } from "../../cli/output.ts";
import { printableLine } from "../../cli/printable.ts";
import { systemdUnit } from "../../cli/service/systemd-unit.ts";
import { usage } from "../../cli/usage.ts";
import { defaultConfig } from "../../config/defaults.ts";
import { programWords } from "../../runtime/executable.ts";

export default class Systemd extends BaseCommand {
  static override usage =
    "service systemd [--host ADDRESS] [--port NUMBER] [--user NAME [--data FOLDER]] [--config FILE] [--encryption-key FILE] [--program FILE]";
  static override summary = "Print a unit with which systemd runs the server.";
  static override description =
    "The server then runs as a user that exists only while it does, may write to its data folder and its cache and to nothing else, and is started again after a crash. Nothing is read or changed here; the unit says how it is installed. The configuration file and the key are handed over by systemd, so that only root need be able to read them.";
  static override examples = [
    { description: "Look at it", command: "<%= config.bin %> service systemd" },
    {
      description: "Install it, for others to reach, with a key",
      command:
        "<%= config.bin %> service systemd --host 0.0.0.0 --encryption-key /etc/evreg/key > /etc/systemd/system/evreg.service",
    },
    {
      description: "As a user there is, on a folder there is",
      command: "<%= config.bin %> service systemd --user evreg --data /srv/evreg",
    },
  ];
  static override flags = {
    host: Flags.string({ summary: "Address to listen on (default 127.0.0.1).", helpValue: "ADDRESS" }),
    port: numberFlag("Port to listen on (default 7480)."),
    user: Flags.string({ summary: "The user to run it as, instead of one of its own.", helpValue: "NAME" }),
    "encryption-key": Flags.string({
      summary: "The file that holds EVREG_ENCRYPTION_KEY.",
      helpValue: "FILE",
    }),
    program: Flags.string({
      summary: "Where evreg is installed, if not where it runs from now.",
      helpValue: "FILE",
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Systemd);
    const { host, port, user, data, program } = flags;
    if (data !== undefined && user === undefined) {
      throw usage("--data needs --user: a user that exists only while the server runs can own no folder.");
    }
    if (user !== undefined && !/^[A-Za-z_][\w-]*$/.test(user)) {
      throw usage(`--user: ${JSON.stringify(user)} is no name of a user.`);
    }
    if (port !== undefined && port > 65_535) throw usage("--port takes a number up to 65535.");
    const words = given({ host: host === undefined ? undefined : plain("--host", host), port });
    const paths = given({
      data: path("--data", data),
      config: path("--config", flags.config),
      "encryption-key": path("--encryption-key", flags["encryption-key"]),
      program: path("--program", program),
    });
    const installed = paths.program === undefined ? programWords() : [paths.program];
    const unit = systemdUnit({
      asked: `service systemd${flagWords({ ...words, ...given({ user }), ...paths })}`,
      program: installed,
      words: Object.entries(words).flatMap(([name, value]) => [`--${name}`, String(value)]),
      user,
      data: paths.data,
      config: paths.config,
      encryptionKey: paths["encryption-key"],
      hasLowPort: port !== undefined && port > 0 && port < 1_024,
      shutdownGraceMs: defaultConfig("").shutdownGraceMs,
    });
    const { format } = this.outputFor(flags);
    if (format === "table") await writeOut(unit);
    else await this.outputFor(flags).document({ data: unit });
    const hidden = installed.find(isHidden);
    if (hidden !== undefined) {
      warn(hidden, "Put evreg elsewhere, such as /usr/local/bin, and name it with --program.");
    }
    if (paths.data !== undefined && isHidden(paths.data)) {
      warn(paths.data, "Name a folder elsewhere with --data, such as /srv/evreg.");
    }
    return EXIT.done;
  }
}

function isHidden(file: string): boolean {
  return /^\/(?:home|root|run\/user|tmp|var\/tmp)(?:\/|$)/.test(file);
}

function warn(file: string, remedy: string): void {
  note(
    `Warning: ${printableLine(file)} cannot be seen by the service, which has no homes and a /tmp of its own. ${remedy}`,
  );
}

function path(flag: string, name: string | undefined): string | undefined {
  return name === undefined ? undefined : resolve(plain(flag, name));
}

/** A line break would begin another setting. */
function plain(flag: string, value: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  if (value === "" || /[\u0000-\u001f\u007f]/.test(value)) {
    throw usage(`${flag}: ${JSON.stringify(value)} cannot be meant.`);
  }
  return value;
}
