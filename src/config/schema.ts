import { EVENT_LIMITS } from "../domain/event.ts";
import { SUBSCRIPTION_LIMITS } from "../domain/subscription.ts";
import { SETTINGS_LIMITS } from "../domain/subscription-settings.ts";

/** The whole configuration, frozen. `CONFIG_KEYS` says what each key means; each part of evreg gets only its slice. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** An absolute path. */
  readonly data: string;
  readonly database: DatabaseConfig;
  readonly tls: TlsConfig;
  readonly shutdownGraceMs: number;
  readonly auth: AuthConfig;
  readonly encryption: EncryptionConfig;
  readonly ui: UiConfig;
  readonly limits: LimitsConfig;
  readonly retention: RetentionConfig;
  readonly delivery: DeliveryConfig;
  readonly log: LogConfig;
  readonly remote: RemoteConfig;
}

interface DatabaseConfig {
  /** With its user and password. Without it, the data are in the data folder. */
  readonly url?: string;
  /** Whether it keeps prepared statements. */
  readonly prepare: boolean;
}

/** Both or none; absolute paths. */
interface TlsConfig {
  readonly cert?: string;
  readonly key?: string;
}

interface AuthConfig {
  readonly mode: "token" | "off";
  readonly anonymousPublish: boolean;
  readonly bootstrapToken?: string;
}

/** Each key as text that `parseEncryptionKey` reads. */
export interface EncryptionConfig {
  readonly key?: string;
  readonly previousKey?: string;
}

interface UiConfig {
  readonly enabled: boolean;
}

export interface LimitsConfig {
  readonly payloadBytes: number;
}

interface RetentionConfig {
  /** In milliseconds. */
  readonly events?: number;
  /** In milliseconds; 0 for ever. */
  readonly audit: number;
}

export interface DeliveryConfig {
  readonly timeoutMs: number;
  readonly maxInFlight: number;
  readonly maxInFlightPerSubscription: number;
  readonly allowHttp: boolean;
  /** In milliseconds; 0: never. */
  readonly disableAfter: number;
  /** The waits before retry 1, 2, … in milliseconds, the last one for all that follow; without it they double. */
  readonly retrySchedule?: readonly number[];
  /** Of subscriptions that are created without a number; without it one for each wait of `retrySchedule`, else 5. */
  readonly maxRetries?: number;
  readonly allowNetworks: readonly string[];
  /** An absolute path. */
  readonly ca?: string;
}

interface LogConfig {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  readonly format: "auto" | "pretty" | "json";
}

interface RemoteConfig {
  /** Without a slash at its end. */
  readonly url?: string;
  readonly token?: string;
  readonly allowInsecureToken: boolean;
}

/** How a key's value is read and checked; see `values.ts` for each kind's rules. */
export type KeyKind =
  | { readonly kind: "integer"; readonly min: number; readonly max: number }
  /** `30m`, `12h` or `30d`, read into milliseconds; `off`, where it can be, into 0. */
  | { readonly kind: "duration"; readonly canBeOff?: true }
  /** `0s` or `5m`, read into milliseconds. */
  | { readonly kind: "waits"; readonly max: number; readonly maxMs: number }
  | { readonly kind: "choice"; readonly choices: readonly string[] }
  | {
      readonly kind:
        | "boolean"
        | "host"
        | "folder"
        | "file"
        | "url"
        | "databaseUrl"
        | "text"
        | "encryptionKey"
        | "networks";
    };

/** One key of the configuration, with every name it goes by. */
export interface ConfigKey {
  /** Dotted, as in the file: `delivery.timeoutMs`. */
  readonly path: string;
  readonly type: KeyKind;
  /** `null`: not set, or worked out at the start (the data folder). */
  readonly default: string | number | boolean | readonly string[] | null;
  readonly description: string;
  readonly env: string;
  /** Another variable that means the same; both set to different values is an error. */
  readonly envAlias?: string;
  /** The command line flag, without its dashes. */
  readonly flag?: string;
  /** Never shown, and also read from a file that the variable `<env>_FILE` names. */
  readonly secret?: true;
}

const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;

/** Every key there is: the file, the environment, the flags, the example file and the documentation follow this table. */
export const CONFIG_KEYS: readonly ConfigKey[] = [
  {
    path: "host",
    type: { kind: "host" },
    default: "127.0.0.1",
    description:
      "Address the server listens on; 0.0.0.0 or :: for all of this machine's. Any that other machines reach needs tls.cert and tls.key, or a proxy with TLS before it.",
    env: "EVREG_HOST",
    flag: "host",
  },
  {
    path: "port",
    type: { kind: "integer", min: 0, max: 65_535 },
    default: 7480,
    description: "Port the server listens on; 0 takes any free one.",
    env: "EVREG_PORT",
    flag: "port",
  },
  {
    path: "data",
    type: { kind: "folder" },
    default: null,
    description:
      "The data folder. Not set: STATE_DIRECTORY where systemd gives it, else ./.evreg. A relative path in a file starts at that file's folder.",
    env: "EVREG_DATA",
    flag: "data",
  },
  {
    path: "database.url",
    type: { kind: "databaseUrl" },
    default: null,
    description:
      "A PostgreSQL database (14 or newer) that holds the data in the place of the data folder, such as postgres://evreg:PASSWORD@db.example.com/evreg?sslmode=verify-full. Several servers may have it. Better given by EVREG_DATABASE_URL_FILE than here.",
    env: "EVREG_DATABASE_URL",
    flag: "database",
    secret: true,
  },
  {
    path: "database.prepare",
    type: { kind: "boolean" },
    default: true,
    description:
      "Whether the database keeps prepared statements. Set it to false behind a pooler that gives each transaction another connection, such as PgBouncer in transaction mode.",
    env: "EVREG_DATABASE_PREPARE",
  },
  {
    path: "tls.cert",
    type: { kind: "file" },
    default: null,
    description:
      "The certificate for https as PEM, followed by its intermediate certificates. Read again at SIGHUP. Not set: http. A relative path in a file starts at that file's folder.",
    env: "EVREG_TLS_CERT",
  },
  {
    path: "tls.key",
    type: { kind: "file" },
    default: null,
    description: "The private key of tls.cert, as PEM without a passphrase.",
    env: "EVREG_TLS_KEY",
  },
  {
    path: "shutdownGraceMs",
    type: { kind: "integer", min: 0, max: 10 * MINUTE_MS },
    default: 10_000,
    description: "How long a stop waits for requests and attempts under way, in milliseconds.",
    env: "EVREG_SHUTDOWN_GRACE_MS",
  },
  {
    path: "auth.mode",
    type: { kind: "choice", choices: ["token", "off"] },
    default: "token",
    description: "token: every request under /v1 needs one. off: none does; only on a loopback host.",
    env: "EVREG_AUTH_MODE",
  },
  {
    path: "auth.anonymousPublish",
    type: { kind: "boolean" },
    default: false,
    description: "Lets callers without a token publish events, and nothing else.",
    env: "EVREG_AUTH_ANONYMOUS_PUBLISH",
  },
  {
    path: "auth.bootstrapToken",
    type: { kind: "text" },
    default: null,
    description:
      "The first admin token, taken over when the data folder holds none. Not set: one is made. Better given by EVREG_BOOTSTRAP_TOKEN_FILE than here.",
    env: "EVREG_BOOTSTRAP_TOKEN",
    secret: true,
  },
  {
    path: "encryption.key",
    type: { kind: "encryptionKey" },
    default: null,
    description:
      "Encrypts the secrets and bearer values of subscriptions in the data file: 32 bytes as base64 or hex, such as openssl rand -base64 32 prints. Once set it is needed for every start. Better given by EVREG_ENCRYPTION_KEY_FILE than here.",
    env: "EVREG_ENCRYPTION_KEY",
    secret: true,
  },
  {
    path: "encryption.previousKey",
    type: { kind: "encryptionKey" },
    default: null,
    description:
      "The key before, for the start at which encryption.key is another one; what it encrypted is then encrypted anew, and it is not needed any more.",
    env: "EVREG_ENCRYPTION_KEY_PREVIOUS",
    secret: true,
  },
  {
    path: "ui.enabled",
    type: { kind: "boolean" },
    default: true,
    description: "Whether the server has the page for browsers at /ui/.",
    env: "EVREG_UI_ENABLED",
  },
  {
    path: "limits.payloadBytes",
    type: { kind: "integer", min: 2, max: EVENT_LIMITS.payloadMaxBytes },
    default: MIB,
    description: "Most bytes in the payload of one event.",
    env: "EVREG_ENVELOPE",
    envAlias: "SERVICE_ENVELOPE",
  },
  {
    path: "retention.events",
    type: { kind: "duration" },
    default: null,
    description:
      "How long events are kept, such as 30d, 12h or 30m; older ones are removed with their deliveries, attempts and idempotency keys, but not before all their deliveries are finished. Not set: for good.",
    env: "EVREG_RETENTION_EVENTS",
  },
  {
    path: "retention.audit",
    type: { kind: "duration", canBeOff: true },
    default: "90d",
    description: "How long evreg audit tells who changed what, such as 90d; off: for good.",
    env: "EVREG_RETENTION_AUDIT",
  },
  {
    path: "delivery.timeoutMs",
    type: { kind: "integer", min: 10, max: 5 * MINUTE_MS },
    default: 10_000,
    description: "How long one attempt may take over connect, headers and body, in milliseconds.",
    env: "EVREG_DELIVERY_TIMEOUT_MS",
  },
  {
    path: "delivery.maxInFlight",
    type: { kind: "integer", min: 1, max: 10_000 },
    default: 4_096,
    description:
      "Attempts under way at once, over all subscriptions. Fewer where half of the file descriptors, or a quarter of the memory (128 KiB each), allows fewer; the log says so. After a crash the attempts under way are made again, so handlers may get as many events twice.",
    env: "EVREG_DELIVERY_MAX_IN_FLIGHT",
  },
  {
    path: "delivery.maxInFlightPerSubscription",
    type: { kind: "integer", min: 1, max: 10_000 },
    default: 512,
    description:
      "Most attempts under way at once for one subscription. Its limit grows up to this while its handler answers as fast as before. Below maxInFlight, so that no subscription can take all. Not set: 512, or half of a smaller maxInFlight.",
    env: "EVREG_DELIVERY_MAX_IN_FLIGHT_PER_SUBSCRIPTION",
  },
  {
    path: "delivery.disableAfter",
    type: { kind: "duration", canBeOff: true },
    default: "5d",
    description:
      "A subscription whose attempts have all failed for so long is deactivated, its deliveries held: 5d, 12h, 30m, or off. Time in which nothing was tried hardly counts.",
    env: "EVREG_DELIVERY_DISABLE_AFTER",
  },
  {
    path: "delivery.retrySchedule",
    type: { kind: "waits", max: SETTINGS_LIMITS.waits, maxMs: SETTINGS_LIMITS.waitMaxMs },
    default: null,
    description:
      "The waits before each retry, such as [0s, 5s, 1m, 10m, 1h, 6h], for subscriptions without a schedule of their own; the last one goes for all retries that follow. Not set: 0, 2, 4, 8 and 16 seconds, then doubling up to 6 hours.",
    env: "EVREG_DELIVERY_RETRY_SCHEDULE",
  },
  {
    path: "delivery.maxRetries",
    type: { kind: "integer", min: 0, max: SUBSCRIPTION_LIMITS.retriesMax },
    default: null,
    description:
      "Retries of a subscription that is created without a number; those that exist keep theirs. Not set: one for each wait of retrySchedule, else 5.",
    env: "EVREG_DELIVERY_MAX_RETRIES",
  },
  {
    path: "delivery.allowHttp",
    type: { kind: "boolean" },
    default: false,
    description: "Lets handlers be http: as well as https:.",
    env: "EVREG_DELIVERY_ALLOW_HTTP",
  },
  {
    path: "delivery.allowNetworks",
    type: { kind: "networks" },
    default: [],
    description:
      "Networks in CIDR form that handlers may be in although they are private, such as 10.1.0.0/16. The metadata services of clouds stay closed unless one is named exactly (/32, /128).",
    env: "EVREG_DELIVERY_ALLOW_NETWORKS",
  },
  {
    path: "delivery.ca",
    type: { kind: "file" },
    default: null,
    description:
      "PEM file of certificate authorities, or of self-signed certificates, that handlers may have beside those that Node trusts. Read at the start. A relative path in a file starts at that file's folder.",
    env: "EVREG_DELIVERY_CA",
  },
  {
    path: "log.level",
    type: { kind: "choice", choices: ["debug", "info", "warn", "error", "silent"] },
    default: "info",
    description:
      "The least important lines that are written. debug: also a line for each read, publish and delivery that went well, as serve --dev does unless this is set.",
    env: "EVREG_LOG_LEVEL",
    flag: "log-level",
  },
  {
    path: "log.format",
    type: { kind: "choice", choices: ["auto", "pretty", "json"] },
    default: "auto",
    description: "pretty: for people. json: a JSON object a line. auto: pretty on a terminal, else json.",
    env: "EVREG_LOG_FORMAT",
    flag: "log-format",
  },
  {
    path: "remote.url",
    type: { kind: "url" },
    default: null,
    description:
      "The server that commands talk to. Not set: the one on this data folder, or the folder itself.",
    env: "EVREG_URL",
    flag: "url",
  },
  {
    path: "remote.token",
    type: { kind: "text" },
    default: null,
    description:
      "The token for remote.url. From a file it is only ever sent to the remote.url of the same file. From a variable it is not sent to a remote.url of a file that --config or EVREG_CONFIG did not name.",
    env: "EVREG_TOKEN",
    flag: "token",
    secret: true,
  },
  {
    path: "remote.allowInsecureToken",
    type: { kind: "boolean" },
    default: false,
    description: "Lets the token go over http: to another machine, where whoever is in between can read it.",
    env: "EVREG_ALLOW_INSECURE_TOKEN",
  },
];

/** The file to read (`--config`). */
export const CONFIG_FILE_ENV = "EVREG_CONFIG";

/** The context to act on, see `contexts.ts` (`--context`). */
export const CONTEXT_ENV = "EVREG_CONTEXT";

export const KEY_BY_PATH: ReadonlyMap<string, ConfigKey> = new Map(CONFIG_KEYS.map((key) => [key.path, key]));

/** `auth`, `limits`, …: the mappings that hold keys. */
export const SECTIONS: ReadonlySet<string> = new Set(
  CONFIG_KEYS.filter((key) => key.path.includes(".")).map((key) => key.path.slice(0, key.path.indexOf("."))),
);
