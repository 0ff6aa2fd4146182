import { resolve } from "node:path";
import { ConfigCommand, examples } from "../cli/base-command.ts";
import { definedOnly, numberFlag, textFlag } from "../cli/flags.ts";
import { note } from "../cli/io/output.ts";
import { escapeControl, flagWords } from "../cli/io/text.ts";
import { usageError } from "../cli/usage-errors.ts";
import { defaultConfig } from "../config/load.ts";
import { programCommand } from "../runtime/process.ts";

export class Systemd extends ConfigCommand {
  static override usage =
    "service systemd [--host ADDRESS] [--port NUMBER] [--user NAME [--data FOLDER]] [--config FILE] [--encryption-key FILE] [--program FILE]";
  static override summary = "Print a unit with which systemd runs the server.";
  static override description =
    "The server then runs as a user that exists only while it does, may write to its data folder and its cache and to nothing else, and is started again after a crash. Nothing is read or changed here; the unit says how it is installed. The configuration file and the key are handed over by systemd, so that only root need be able to read them.";
  static override examples = examples({
    "Look at it": "evreg service systemd",
    "Install it, with a key, for a proxy with TLS in front of it":
      "evreg service systemd --encryption-key /etc/evreg/key > /etc/systemd/system/evreg.service",
    "For other machines, with tls.cert and tls.key in its configuration":
      "evreg service systemd --host 0.0.0.0 --config /etc/evreg/evreg.config.yaml",
    "As a user there is, on a folder there is": "evreg service systemd --user evreg --data /srv/evreg",
  });
  static override flags = {
    host: textFlag(
      "Address to listen on (default 127.0.0.1). Any that others reach needs tls.cert and tls.key, or a proxy with TLS before it.",
      "ADDRESS",
    ),
    port: numberFlag("Port to listen on (default 7480).", { max: 65_535 }),
    user: textFlag("The user to run it as, instead of one of its own.", "NAME"),
    "encryption-key": textFlag("The file that holds EVREG_ENCRYPTION_KEY.", "FILE"),
    program: textFlag("Where evreg is installed, if not where it runs from now.", "FILE"),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Systemd);
    const { host, port, user, data, program } = flags;
    if (data !== undefined && user === undefined) {
      throw usageError(
        "--data needs --user: a user that exists only while the server runs can own no folder.",
      );
    }
    const words = definedOnly({ host, port });
    const paths = definedOnly({
      data: path(data),
      config: path(flags.config),
      "encryption-key": path(flags["encryption-key"]),
      program: path(program),
    });
    const installed = paths.program === undefined ? programCommand() : [paths.program];
    const unit = systemdUnit({
      commandWords: `service systemd${flagWords({ ...words, ...definedOnly({ user }), ...paths })}`,
      program: installed,
      words: Object.entries(words).flatMap(([name, value]) => [`--${name}`, String(value)]),
      user,
      data: paths.data,
      config: paths.config,
      encryptionKey: paths["encryption-key"],
      hasLowPort: port !== undefined && port > 0 && port < 1_024,
      shutdownGraceMs: defaultConfig("").shutdownGraceMs,
    });
    await this.outputFor(flags).plain(unit);
    const hidden = installed.find(isHidden);
    if (hidden !== undefined) {
      warn(hidden, "Put evreg elsewhere, such as /usr/local/bin, and name it with --program.");
    }
    if (paths.data !== undefined && isHidden(paths.data)) {
      warn(paths.data, "Name a folder elsewhere with --data, such as /srv/evreg.");
    }
  }
}

function isHidden(file: string): boolean {
  return /^\/(?:home|root|run\/user|tmp|var\/tmp)(?:\/|$)/.test(file);
}

function warn(file: string, remedy: string): void {
  note(
    `Warning: ${escapeControl(file)} cannot be seen by the service, which has no homes and a /tmp of its own. ${remedy}`,
  );
}

function path(name: string | undefined): string | undefined {
  return name === undefined ? undefined : resolve(name);
}

export interface UnitOptions {
  /** The words that print this unit, as they are typed behind `evreg`; without line breaks. */
  readonly commandWords: string;
  /** The command line's first words: the program, as absolute paths. */
  readonly program: readonly string[];
  /** Further words for `serve`. */
  readonly words: readonly string[];
  /** When absent, systemd makes one for the time it runs. */
  readonly user: string | undefined;
  /** When absent, systemd makes `/var/lib/evreg`. */
  readonly data: string | undefined;
  readonly config: string | undefined;
  readonly encryptionKey: string | undefined;
  /** Whether the port is below 1024, which takes a right of its own. */
  readonly hasLowPort: boolean;
  readonly shutdownGraceMs: number;
}

/** Leaves an evreg server what it needs of the system, and nothing else. */
const HARDENING: readonly string[] = [
  "NoNewPrivileges=yes",
  "PrivateTmp=yes",
  "PrivateDevices=yes",
  "ProtectSystem=strict",
  "ProtectHome=yes",
  "ProtectProc=invisible",
  "ProtectClock=yes",
  "ProtectHostname=yes",
  "ProtectControlGroups=yes",
  "ProtectKernelLogs=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelTunables=yes",
  "RestrictNamespaces=yes",
  "RestrictRealtime=yes",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "RemoveIPC=yes",
  "# AF_NETLINK: to know this machine's own addresses, which nothing is delivered to.",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged @resources",
  "SystemCallErrorNumber=EPERM",
  "# MemoryDenyWriteExecute= is left out: the program is compiled while it runs.",
];

const STOP_MARGIN_S = 20;

/** A unit file that `systemd-analyze verify` takes. */
export function systemdUnit(options: UnitOptions): string {
  const { commandWords, user, data, config, encryptionKey, hasLowPort, shutdownGraceMs } = options;
  const credentials: string[] = [];
  if (config !== undefined) credentials.push(`LoadCredential=config.yaml:${escaped(config)}`);
  if (encryptionKey !== undefined) {
    credentials.push(
      `LoadCredential=encryption-key:${escaped(encryptionKey)}`,
      "Environment=EVREG_ENCRYPTION_KEY_FILE=%d/encryption-key",
    );
  }
  const capability = hasLowPort ? "CAP_NET_BIND_SERVICE" : "";
  return `${[
    "# Install it, as root:",
    `#   evreg ${commandWords} > /etc/systemd/system/evreg.service`,
    "#   systemctl daemon-reload && systemctl enable --now evreg",
    "# Its log: journalctl -u evreg. Commands act on it, as root, with:",
    `#   evreg doctor --data ${data ?? "/var/lib/evreg"}`,
    "[Unit]",
    "Description=evreg: event registry and webhook delivery",
    "Wants=network-online.target",
    "After=network-online.target",
    "",
    "[Service]",
    "Type=exec",
    `ExecStart=${commandLine(options)}`,
    "ExecReload=/bin/kill -HUP $MAINPID",
    "Restart=on-failure",
    "RestartSec=2s",
    "# A stop finishes what is under way; the server itself decides how long that may take.",
    `TimeoutStopSec=${Math.ceil(shutdownGraceMs / 1_000) + STOP_MARGIN_S}s`,
    "KillMode=mixed",
    "# A connection for each caller and for each delivery under way.",
    "LimitNOFILE=65536",
    "",
    user === undefined ? "DynamicUser=yes" : `User=${user}`,
    ...(data === undefined
      ? ["StateDirectory=evreg", "StateDirectoryMode=0700"]
      : [`ReadWritePaths=${quoted(data)}`]),
    "# Where the single executable keeps the part of it that the system must load from a file.",
    "CacheDirectory=evreg",
    "CacheDirectoryMode=0700",
    "UMask=0077",
    ...credentials,
    "",
    ...HARDENING,
    `CapabilityBoundingSet=${capability}`,
    `AmbientCapabilities=${capability}`,
    "",
    "[Install]",
    "WantedBy=multi-user.target",
  ].join("\n")}\n`;
}

function commandLine({ program, words, data, config }: UnitOptions): string {
  const all = [...program, "serve", ...words, ...(data === undefined ? [] : ["--data", data])];
  const line = all.map(quoted).join(" ");
  // The path is not quoted: systemd replaces %d by the folder's name.
  return config === undefined ? line : `${line} --config %d/config.yaml`;
}

/** A word of a command line, as it is. */
function quoted(word: string): string {
  const text = escaped(word).replaceAll("$", "$$$$");
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** `%` begins a specifier everywhere in a unit. */
function escaped(text: string): string {
  return text.replaceAll("%", "%%");
}
