import type { AttemptErrorCode, DeliveryStatus, TlsReason } from "../domain/delivery.ts";
import { wrap } from "./io/text.ts";

/** Breaks a paragraph into lines, each behind so many spaces. */
type Wrapped = (text: string, indent: number) => string;

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

function deliveryStates(wrapped: Wrapped): string {
  return [
    wrapped(STATES_HEAD, 0),
    entryLines(STATES, wrapped),
    wrapped(RETRIES, 0),
    wrapped(ERRORS, 0),
    entryLines(CODES, wrapped),
  ].join("\n");
}

function entryLines(meanings: Readonly<Record<string, string>>, wrapped: Wrapped): string {
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
  [7, "Some items of a bulk were refused; the others are done."],
  [
    130,
    "Interrupted (Ctrl-C, or SIGTERM) before it was done. evreg serve and evreg listen end in order then, with 0.",
  ],
];

const EXIT_CODES_HEAD =
  'What the process of a command ends with. The reason is on stderr; with --json it is one JSON document there: {"error", "details", "code"}, where code is the HTTP status.';

function exitCodes(wrapped: Wrapped): string {
  const lines = MEANINGS.map(
    ([code, meaning]) => `${String(code).padStart(5)}  ${wrapped(meaning, 7).trimStart()}`,
  );
  return `${wrapped(EXIT_CODES_HEAD, 0)}\n${lines.join("")}`;
}

/** The topics of `evreg help` beside the commands: what the messages of commands lead to. */
const TOPICS = { "delivery-states": deliveryStates, "exit-codes": exitCodes };

export type HelpTopic = keyof typeof TOPICS;

export const HELP_TOPICS = Object.keys(TOPICS) as readonly HelpTopic[];

export function isHelpTopic(name: string): name is HelpTopic {
  return Object.hasOwn(TOPICS, name);
}

/** @param width cells of a line */
export function helpOn(topic: HelpTopic, width: number): string {
  return TOPICS[topic]((paragraph, indent) =>
    wrap(paragraph, width - indent)
      .map((line) => `${" ".repeat(indent)}${line}\n`)
      .join(""),
  );
}
