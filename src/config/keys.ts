import { EVENT_LIMITS } from "../domain/event.ts";
import { SUBSCRIPTION_LIMITS } from "../model/subscription.ts";
import {
  BOOLEAN,
  choice,
  DATABASE_URL,
  DURATION_OR_OFF,
  ENCRYPTION_KEY,
  FILE,
  FOLDER,
  HOST,
  integer,
  type Kind,
  MINTED_TOKEN,
  NETWORKS,
  SERVER_URL,
  TEXT,
  waits,
} from "./value-kinds.ts";

/** What the schema says of one key. */
interface KeySchema {
  readonly kind: Kind<unknown>;
  /** The default as a file would have it. Without one the key is not set, or worked out at the start (the data folder). */
  readonly default?: string | number | boolean | readonly string[];
  readonly description: string;
  /** Its variable; by default `EVREG_TLS_CERT` for `tls.cert`. */
  readonly env?: string;
  /** Another variable that means the same; both set to different values is an error. */
  readonly envAlias?: string;
  /** The command line flag, without its dashes. */
  readonly flag?: string;
  /** Never shown, and also read from a file that the variable `<env>_FILE` names. */
  readonly secret?: true;
  /** Whether all nodes on one database should have the same. */
  readonly ofAllNodes?: true;
}

const MINUTE_MS = 60_000;

/**
 * Every key there is, by its section; `""` has those that are in none. The file, the environment, the flags, the example file and the
 * documentation follow this table.
 */
const SCHEMA = {
  "": {
    host: {
      kind: HOST,
      default: "127.0.0.1",
      description:
        "Address the server listens on; 0.0.0.0 or :: for all of this machine's. Any that other machines reach needs tls.cert and tls.key, or a proxy with TLS before it.",
      flag: "host",
    },
    port: {
      kind: integer(0, 65_535),
      default: 7480,
      description: "Port the server listens on; 0 takes any free one.",
      flag: "port",
    },
    data: {
      kind: FOLDER,
      description:
        "The data folder. Not set: STATE_DIRECTORY where systemd gives it, else ./.evreg. A relative path in a file starts at that file's folder.",
      flag: "data",
    },
    shutdownGraceMs: {
      kind: integer(0, 10 * MINUTE_MS),
      default: 10_000,
      description: "How long a stop waits for requests and attempts under way, in milliseconds.",
    },
  },
  database: {
    url: {
      kind: DATABASE_URL,
      description:
        "A PostgreSQL database (14 or newer) that holds the data in the place of the data folder, such as postgres://evreg:PASSWORD@db.example.com/evreg?sslmode=verify-full; prepare=false in it is for a pooler that gives each transaction another connection. Several servers may have it. Better given by EVREG_DATABASE_URL_FILE than here.",
      flag: "database",
      secret: true,
    },
  },
  tls: {
    cert: {
      kind: FILE,
      description:
        "The certificate for https as PEM, followed by its intermediate certificates. Read again at SIGHUP. Not set: http. A relative path in a file starts at that file's folder.",
    },
    key: { kind: FILE, description: "The private key of tls.cert, as PEM without a passphrase." },
  },
  auth: {
    mode: {
      kind: choice("token", "off"),
      default: "token",
      description: "token: every request under /v1 needs one. off: none does; only on a loopback host.",
      ofAllNodes: true,
    },
    anonymousPublish: {
      kind: BOOLEAN,
      default: false,
      description: "Lets callers without a token publish events, and nothing else.",
      ofAllNodes: true,
    },
    bootstrapToken: {
      kind: MINTED_TOKEN,
      description:
        "The first admin token, taken over when the data folder holds none. Not set: one is made. Better given by EVREG_BOOTSTRAP_TOKEN_FILE than here.",
      env: "EVREG_BOOTSTRAP_TOKEN",
      secret: true,
    },
  },
  encryption: {
    key: {
      kind: ENCRYPTION_KEY,
      description:
        "Encrypts the secrets and bearer values of subscriptions in the data file: 32 bytes as base64 or hex, such as openssl rand -base64 32 prints. Once set it is needed for every start. Better given by EVREG_ENCRYPTION_KEY_FILE than here.",
      secret: true,
    },
    previousKey: {
      kind: ENCRYPTION_KEY,
      description:
        "The key before, for the start at which encryption.key is another one; what it encrypted is then encrypted anew, and it is not needed any more. Better given by EVREG_ENCRYPTION_KEY_PREVIOUS_FILE than here.",
      env: "EVREG_ENCRYPTION_KEY_PREVIOUS",
      secret: true,
    },
  },
  ui: {
    enabled: {
      kind: BOOLEAN,
      default: true,
      description: "Whether the server has the page for browsers at /ui/.",
    },
  },
  limits: {
    payloadBytes: {
      kind: integer(2, EVENT_LIMITS.payloadMaxBytes),
      default: 1024 * 1024,
      description: "Most bytes in the payload of one event.",
      env: "EVREG_ENVELOPE",
      envAlias: "SERVICE_ENVELOPE",
      ofAllNodes: true,
    },
  },
  retention: {
    events: {
      kind: DURATION_OR_OFF,
      description:
        "How long events are kept, such as 30d, 12h or 30m; older ones are removed with their deliveries, attempts and idempotency keys, but not before all their deliveries are finished. Not set, or off: for good.",
      ofAllNodes: true,
    },
    audit: {
      kind: DURATION_OR_OFF,
      default: "90d",
      description: "How long evreg audit tells who changed what, such as 90d; off: for good.",
      ofAllNodes: true,
    },
  },
  delivery: {
    timeoutMs: {
      kind: integer(10, 5 * MINUTE_MS),
      default: 10_000,
      description:
        "How long one attempt may take over looking the name up, connecting, headers and body, in milliseconds.",
      ofAllNodes: true,
    },
    maxInFlight: {
      kind: integer(1, 10_000),
      default: 4_096,
      description:
        "Attempts under way at once, over all subscriptions. Fewer where half of the file descriptors, or a quarter of the memory (128 KiB each), allows fewer; the log says so. After a crash the attempts under way are made again, so handlers may get as many events twice.",
    },
    maxInFlightPerSubscription: {
      kind: integer(1, 10_000),
      default: 512,
      description:
        "Most attempts under way at once for one subscription. Its limit grows up to this while its handler answers as fast as before. No subscription gets more than half of maxInFlight.",
    },
    disableAfter: {
      kind: DURATION_OR_OFF,
      default: "5d",
      description:
        "A subscription whose attempts have all failed for so long is deactivated, its deliveries held: 5d, 12h, 30m, or off. Time in which nothing was tried hardly counts.",
      ofAllNodes: true,
    },
    retrySchedule: {
      kind: waits(SUBSCRIPTION_LIMITS.waits, SUBSCRIPTION_LIMITS.waitMaxMs),
      description:
        "The waits before each retry, such as [0s, 5s, 1m, 10m, 1h, 6h], for subscriptions without a schedule of their own; the last one goes for all retries that follow. Not set: 0, 2, 4, 8 and 16 seconds, then doubling up to 6 hours.",
      ofAllNodes: true,
    },
    maxRetries: {
      kind: integer(0, SUBSCRIPTION_LIMITS.retriesMax),
      description:
        "Retries of a subscription that is created without a number; those that exist keep theirs. Not set: one for each wait of retrySchedule, else 5.",
      ofAllNodes: true,
    },
    allowHttp: {
      kind: BOOLEAN,
      default: false,
      description: "Lets handlers be http: as well as https:.",
      ofAllNodes: true,
    },
    allowNetworks: {
      kind: NETWORKS,
      default: [],
      description:
        "Networks in CIDR form that handlers may be in although they are private, such as 10.1.0.0/16. The metadata services of clouds stay closed unless one is named exactly (/32, /128).",
      ofAllNodes: true,
    },
    ca: {
      kind: FILE,
      description:
        "PEM file of certificate authorities, or of self-signed certificates, that handlers may have beside those that Node trusts. Read at the start. A relative path in a file starts at that file's folder.",
    },
  },
  log: {
    level: {
      kind: choice("debug", "info", "warn", "error", "silent"),
      default: "info",
      description:
        "The least important lines that are written: debug, info, warn, error or silent. debug: also a line for each read, publish and delivery that went well, as serve --dev does unless this is set.",
      flag: "log-level",
    },
    format: {
      kind: choice("auto", "pretty", "json"),
      default: "auto",
      description: "pretty: for people. json: a JSON object a line. auto: pretty on a terminal, else json.",
      flag: "log-format",
    },
  },
  remote: {
    url: {
      kind: SERVER_URL,
      description:
        "The server that commands talk to. Not set: the one on this data folder, or the folder itself.",
      env: "EVREG_URL",
      flag: "url",
    },
    token: {
      kind: TEXT,
      description:
        "The token for remote.url. From a file it is only ever sent to the remote.url of the same file. From a variable it is not sent to a remote.url of a file that --config or EVREG_CONFIG did not name. Better given by EVREG_TOKEN_FILE than here.",
      env: "EVREG_TOKEN",
      flag: "token",
      secret: true,
    },
    allowInsecureToken: {
      kind: BOOLEAN,
      default: false,
      description:
        "Lets the token go over http: to another machine, where whoever is in between can read it.",
      env: "EVREG_ALLOW_INSECURE_TOKEN",
    },
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, KeySchema>>>>;

type ConfigSchema = typeof SCHEMA;
type KeyValue<K> = K extends { readonly kind: Kind<infer T> } ? T : never;
type WithDefault<S> = { [N in keyof S]: S[N] extends { readonly default: unknown } ? N : never }[keyof S];
type Section<S> = { readonly [N in WithDefault<S>]: KeyValue<S[N]> } & {
  readonly [N in Exclude<keyof S, WithDefault<S>>]?: KeyValue<S[N]>;
};

/** The whole configuration, frozen. Each part of evreg gets only its slice. Keys without a default may be absent in their sections. */
export type Config = Section<ConfigSchema[""]> & { readonly data: string } & {
  readonly [N in Exclude<keyof ConfigSchema, "">]: Section<ConfigSchema[N]>;
};

export type DeliveryConfig = Config["delivery"];

/** One key of the configuration, with every name it goes by. */
export interface ConfigKey extends Omit<KeySchema, "default"> {
  readonly kind: Kind;
  /** `delivery.timeoutMs`: its section with a dot, where it has one, and its name. */
  readonly path: string;
  /** The mapping of the file that holds it; empty for the file's own keys. */
  readonly section: string;
  readonly name: string;
  readonly default: NonNullable<KeySchema["default"]> | null;
  readonly env: string;
}

export const CONFIG_KEYS: readonly ConfigKey[] = Object.entries(SCHEMA).flatMap(([section, keys]) =>
  Object.entries<KeySchema>(keys).map(([name, key]) => keyAt(section, name, key)),
);

function keyAt(section: string, name: string, key: KeySchema): ConfigKey {
  const path = section === "" ? name : `${section}.${name}`;
  const env = `EVREG_${path.replace(/[A-Z]/g, "_$&").replace(".", "_").toUpperCase()}`;
  // What a kind reads is only given back to the same kind.
  return { default: null, env, ...key, kind: key.kind as Kind, path, section, name };
}

/** The file to read (`--config`). */
export const CONFIG_FILE_ENV = "EVREG_CONFIG";

export const KEY_BY_PATH: ReadonlyMap<string, ConfigKey> = new Map(CONFIG_KEYS.map((key) => [key.path, key]));

/** `auth`, `limits`, …: the mappings that hold keys. */
export const SECTIONS: ReadonlySet<string> = new Set(Object.keys(SCHEMA).filter((section) => section !== ""));
