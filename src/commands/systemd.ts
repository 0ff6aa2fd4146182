import { resolve } from "node:path";
import { BaseCommand, examples } from "../cli/base-command.ts";
import { commonFlags, textFlag } from "../cli/flags.ts";
import { note } from "../cli/io/output.ts";
import { escapeControl } from "../cli/io/text.ts";
import { programCommand } from "../runtime/process.ts";

export class Systemd extends BaseCommand {
  static override summary = "Print a unit with which systemd runs the server.";
  static override description =
    "The server then runs as a user that exists only while it does, may write to its data folder and its cache and to nothing else, and is started again after a crash. Nothing is read or changed here; the unit says how it is installed. The configuration file, with the address and the port, and the key are handed over by systemd, so that only root need be able to read them. What else should be different goes into a drop-in (systemctl edit evreg).";
  static override examples = examples({
    "Look at it": "evreg service systemd",
    "Install it, with a key":
      "evreg service systemd --encryption-key /etc/evreg/key > /etc/systemd/system/evreg.service",
    "With a configuration file": "evreg service systemd --config /etc/evreg/evreg.config.yaml",
  });
  static override flags = {
    config: commonFlags.config,
    "encryption-key": textFlag("The file that holds EVREG_ENCRYPTION_KEY.", "FILE"),
    program: textFlag("Where evreg is installed, if not where it runs from now.", "FILE"),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Systemd);
    const program = flags.program === undefined ? programCommand() : [resolve(flags.program)];
    const paths = { config: flags.config, "encryption-key": flags["encryption-key"] };
    await this.outputFor(flags).plain(systemdUnit(program, paths));
    const hidden = program.find((file) => /^\/(?:home|root|run\/user|tmp|var\/tmp)(?:\/|$)/.test(file));
    if (hidden === undefined) return;
    note(
      `Warning: ${escapeControl(hidden)} cannot be seen by the service, which has no homes and a /tmp of its own. Put evreg elsewhere, such as /usr/local/bin, and name it with --program.`,
    );
  }
}

/** What systemd hands over. */
interface Credentials {
  readonly config?: string | undefined;
  readonly "encryption-key"?: string | undefined;
}

/**
 * A unit file that `systemd-analyze verify` takes.
 * @param program the words that start evreg, as absolute paths
 */
export function systemdUnit(program: readonly string[], credentials: Credentials): string {
  const { config, "encryption-key": key } = credentials;
  const line = [...program, "serve"].map(quoted).join(" ");
  const loaded = [
    ...(config === undefined ? [] : [`LoadCredential=config.yaml:${escaped(resolve(config))}`]),
    ...(key === undefined
      ? []
      : [
          `LoadCredential=encryption-key:${escaped(resolve(key))}`,
          "Environment=EVREG_ENCRYPTION_KEY_FILE=%d/encryption-key",
        ]),
  ].map((text) => `${text}\n`);
  // The path of the configuration is not quoted: systemd replaces %d by the folder's name.
  return `# Save it as /etc/systemd/system/evreg.service, then as root:
#   systemctl daemon-reload && systemctl enable --now evreg
# Its log: journalctl -u evreg. Commands act on it, as root, with:
#   evreg doctor --data /var/lib/evreg
[Unit]
Description=evreg: event registry and webhook delivery
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart=${line}${config === undefined ? "" : " --config %d/config.yaml"}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2s
# A stop finishes what is under way, for 10 s unless shutdownGraceMs says otherwise.
TimeoutStopSec=30s
KillMode=mixed
# A connection for each caller and for each delivery under way.
LimitNOFILE=65536

DynamicUser=yes
StateDirectory=evreg
StateDirectoryMode=0700
# Where the single executable keeps the part of it that the system must load from a file.
CacheDirectory=evreg
CacheDirectoryMode=0700
UMask=0077
${loaded.join("")}
NoNewPrivileges=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
ProtectClock=yes
ProtectHostname=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
# AF_NETLINK: to know this machine's own addresses, which nothing is delivered to.
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
# MemoryDenyWriteExecute= is left out: the program is compiled while it runs.
# For a port below 1024, both of these take CAP_NET_BIND_SERVICE.
CapabilityBoundingSet=
AmbientCapabilities=

[Install]
WantedBy=multi-user.target
`;
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
