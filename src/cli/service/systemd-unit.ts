export interface UnitOptions {
  /** The words that print this unit, as they are typed behind `evreg`; without line breaks. */
  readonly asked: string;
  /** The command line's first words: the program, as absolute paths. */
  readonly program: readonly string[];
  /** Further words for `serve`. */
  readonly words: readonly string[];
  /** Who runs it; a user made for the time it runs when absent. */
  readonly user: string | undefined;
  /** The data folder; `/var/lib/evreg`, which systemd makes, when absent. */
  readonly data: string | undefined;
  /** The configuration file, read by systemd, so that only root need be able to. */
  readonly config: string | undefined;
  /** The file with the encryption key, in the same way. */
  readonly encryptionKey: string | undefined;
  /** Whether a port below 1024 is listened at, which takes a right of its own. */
  readonly hasLowPort: boolean;
  /** For a stop in order; systemd must wait longer. */
  readonly shutdownGraceMs: number;
}

/** What an evreg server needs of the system, and nothing else of it. */
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
  const { asked, user, data, config, encryptionKey, hasLowPort, shutdownGraceMs } = options;
  const credentials = [
    ...(config === undefined ? [] : [`LoadCredential=config.yaml:${escaped(config)}`]),
    ...(encryptionKey === undefined
      ? []
      : [
          `LoadCredential=encryption-key:${escaped(encryptionKey)}`,
          "Environment=EVREG_ENCRYPTION_KEY_FILE=%d/encryption-key",
        ]),
  ];
  const folder = data ?? "/var/lib/evreg";
  return `${[
    "# Install it, as root:",
    `#   evreg ${asked} > /etc/systemd/system/evreg.service`,
    "#   systemctl daemon-reload && systemctl enable --now evreg",
    "# Its log: journalctl -u evreg. Commands act on it, as root, with:",
    `#   evreg doctor --data ${folder}`,
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
    ...(user === undefined ? ["DynamicUser=yes"] : [`User=${user}`]),
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
    `CapabilityBoundingSet=${hasLowPort ? "CAP_NET_BIND_SERVICE" : ""}`,
    `AmbientCapabilities=${hasLowPort ? "CAP_NET_BIND_SERVICE" : ""}`,
    "",
    "[Install]",
    "WantedBy=multi-user.target",
  ].join("\n")}\n`;
}

function commandLine({ program, words, data, config }: UnitOptions): string {
  const all = [...program, "serve", ...words, ...(data === undefined ? [] : ["--data", data])];
  const given = all.map(quoted);
  // Not quoted: systemd puts the folder's name in the place of %d.
  return [...given, ...(config === undefined ? [] : ["--config", "%d/config.yaml"])].join(" ");
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
