import { CONFIG_FILE_ENV, CONFIG_KEYS, type ConfigKey, CONTEXT_ENV } from "../../config/keys.ts";
import type { AttemptErrorCode, DeliveryStatus, TlsReason } from "../../domain/delivery.ts";

const STATES_HEAD =
  "An event goes to each active subscription to its action as one delivery, in one of these states. `evreg deliveries` lists them, and `evreg deliveries get ID` shows each attempt.";

const STATES: Readonly<Record<DeliveryStatus, string>> = {
  pending:
    "The next attempt is due now, the first one or one that you asked for; or it waits for its place in an order.",
  delivering: "An attempt is under way.",
  waiting: "The last attempt failed; the next has its time.",
  held: "Its subscription is paused; it goes on when that is active again.",
  delivered: "The handler answered 200 to 299. Final.",
  failed:
    "The retries are used up, and its subscription is not ordered or passes over it; or the handler answered 410, or somebody skipped it. Final, but `evreg deliveries retry ID` sends it again.",
  filtered: "The subscription's filter excluded the event; nothing was sent. Final.",
  cancelled: "Its subscription was deleted. Final.",
};

const RETRIES =
  "Retries: all answers but 200 to 299 fail an attempt, redirects as well. The waits before the retries are 0, 2, 4, 8 and 16 seconds, each up to 10 % longer by chance; with more than 5 retries they go on doubling up to 6 hours. There are 5 retries, the last 30 s after the first attempt, unless the subscription (--max-retries, at most 20; --retry-schedule) or the server (delivery.maxRetries, delivery.retrySchedule) says otherwise. A Retry-After of the handler lengthens a wait. 410 fails the delivery and deactivates the subscription, which holds its other deliveries.";

const ERRORS =
  "The last error is HTTP and the status that the handler answered, or one of these where there was no answer:";

const TLS_REASONS: Readonly<Record<TlsReason, string>> = {
  expired: "the handler renews its certificate",
  not_yet_valid: "check the clocks of both machines",
  wrong_name: "use the certificate's name in the handler's URL",
  self_signed: "name the certificate in delivery.ca",
  unknown_authority: "name the authority in delivery.ca; the handler sends the whole chain",
  certificate_refused: "revoked, broken or not for this use: the handler gets another one",
  handshake_failed: "check the port; evreg speaks TLS 1.2 and 1.3",
};

const CODES: Readonly<Record<AttemptErrorCode, string>> = {
  timeout: "It took longer than the subscription's --timeout, else delivery.timeoutMs.",
  dns_failed: "The host's name could not be looked up.",
  address_refused:
    "The host has an address that deliveries may not go to (delivery.allowNetworks), or it is http: where that is not allowed (delivery.allowHttp).",
  connection_refused: "Nothing listens there.",
  connection_reset: "The connection ended before the answer.",
  tls_failed: `The certificate of that host is not trusted, or https was not agreed on. The attempt says which: ${Object.entries(
    TLS_REASONS,
  )
    .map(([reason, remedy]) => `${reason} (${remedy})`)
    .join(", ")}.`,
  protocol_error: "What came was no HTTP answer.",
  interrupted: "The server ended during the attempt. It counts for nothing and is made again.",
  secret_unreadable: "The subscription's secret is encrypted with a key that the server was not given.",
  event_damaged:
    "The event is damaged in the data file, and was not sent. Restore a backup; evreg doctor --deep tells more.",
  network_error: "Any other failure of the network.",
  consumer_failed: "The consumer of a pull subscription reported a failure; its attempt has the reason.",
};

export function deliveryStates(wrapped: (text: string, indent: number) => string): string {
  return [
    wrapped(STATES_HEAD, 0),
    entryLines(STATES, wrapped),
    wrapped(RETRIES, 0),
    wrapped(ERRORS, 0),
    entryLines(CODES, wrapped),
  ].join("\n");
}

function entryLines(
  meanings: Readonly<Record<string, string>>,
  wrapped: (text: string, indent: number) => string,
): string {
  return Object.entries(meanings)
    .map(([name, meaning]) => `  ${name}\n${wrapped(meaning, 6)}`)
    .join("");
}

/** The meaning of each exit code of `EXIT` and `EXIT_CODE`; a test compares it with both. */
const MEANINGS: readonly (readonly [code: number, meaning: string])[] = [
  [0, "Done."],
  [
    1,
    "Failed: refused as it is (a payload against its schema, too large), or what was waited for went wrong.",
  ],
  [2, "A mistake on the command line or in the configuration. Nothing was done."],
  [3, "Not found: no such record, context or data folder."],
  [4, "Not allowed: no token, an invalid one, or one without the scope for this."],
  [5, "Conflict: a name that is taken, a breaking change, a data folder that another process holds."],
  [
    6,
    "Not now: no evreg answered, or it cannot do this just now (503, 429), as with a full disk. Trying again later may help.",
  ],
  [
    7,
    "Some items of a bulk were refused; the others are done. With a checkpoint, only refusals of this run count.",
  ],
  [
    130,
    "Interrupted (Ctrl-C, or SIGTERM) before it was done. evreg serve and evreg listen end in order then, with 0.",
  ],
];

const EXIT_CODES_HEAD =
  'What the process of a command ends with. The reason is on stderr; with --json it is one JSON document there: {"error", "details", "code"}, where code is the HTTP status.';

export function exitCodes(wrapped: (text: string, indent: number) => string): string {
  const lines = MEANINGS.map(
    ([code, meaning]) => `${String(code).padStart(5)}  ${wrapped(meaning, 7).trimStart()}`,
  );
  return `${wrapped(EXIT_CODES_HEAD, 0)}\n${lines.join("")}`;
}

const ENVIRONMENT_HEAD =
  "Variables that evreg reads. A flag goes before a variable, a variable before the configuration file. One that is set to nothing counts as not set; one that begins with EVREG_ and means nothing is a mistake (exit code 2). `evreg config` shows what is in force.";

/** Variables that are no key of the configuration. */
const OTHERS: readonly (readonly [name: string, about: string])[] = [
  [CONFIG_FILE_ENV, "The configuration file to read (--config)."],
  [CONTEXT_ENV, "The context to act on (--context); see evreg context."],
  ["EVREG_CONFIG_DIR", "The folder for what evreg keeps for you: your contexts. Not set: ~/.config/evreg."],
  [
    "EVREG_CACHE_DIR",
    "The folder where the single executable may put the database engine that it loads; the first start writes it. Not set: the first that can hold a program of evreg in CACHE_DIRECTORY, XDG_CACHE_HOME and ~/.cache, then evreg-<user id> in XDG_RUNTIME_DIR, the folder for temporary files, /var/tmp and /dev/shm.",
  ],
  ["EVREG_DEBUG", "1: show where in evreg a fault of its own arose."],
  ["STATE_DIRECTORY", "The data folder where none is named; systemd sets it."],
  ["NO_COLOR", "Set to anything: no colours."],
  ["COLUMNS", "Cells of a line in tables, instead of the terminal's."],
];

export function environment(wrapped: (text: string, indent: number) => string): string {
  const keys = CONFIG_KEYS.map((key) => [key.env, about(key)] as const);
  const entries = [...keys, ...OTHERS].map(([name, text]) => `${name}\n${wrapped(text, 4)}`);
  return `${wrapped(ENVIRONMENT_HEAD, 0)}\n${entries.join("")}`;
}

function about({ path, description, default: initial, env, envAlias, flag, secret }: ConfigKey): string {
  // Said of the file, which this is not about.
  const parts = [description.replace(/ Better given by \S+ than here\./, "")];
  if (initial !== null && !Array.isArray(initial)) parts.push(`Default: ${String(initial)}.`);
  if (secret === true) parts.push(`${env}_FILE names a file that holds it.`);
  const others = [flag === undefined ? [] : `--${flag}`, envAlias ?? [], path].flat();
  return `${parts.join(" ")} (${others.join(", ")})`;
}
