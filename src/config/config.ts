/** The whole configuration after flags, environment, file and defaults; frozen. Each part below gets only its slice. */
export interface Config {
  readonly host: string;
  readonly port: number;
  /** The data folder, as an absolute path. */
  readonly data: string;
  readonly tls: TlsConfig;
  readonly shutdownGraceMs: number;
  readonly auth: AuthConfig;
  readonly encryption: EncryptionConfig;
  readonly limits: LimitsConfig;
  readonly retention: RetentionConfig;
  readonly delivery: DeliveryConfig;
  readonly log: LogConfig;
  readonly remote: RemoteConfig;
}

/** Both or none; absolute paths. */
interface TlsConfig {
  readonly cert?: string;
  readonly key?: string;
}

interface AuthConfig {
  /** `off` is refused on an address that is not loopback. */
  readonly mode: "token" | "off";
  /** Opens the two publish routes to callers without a token. */
  readonly anonymousPublish: boolean;
  /** The first admin token, for a data folder that holds none; one is made when it is not given. */
  readonly bootstrapToken?: string;
}

/** Each key as text that `parseEncryptionKey` reads. */
export interface EncryptionConfig {
  /** Encrypts the secrets in the data file; without it they are kept as they are. */
  readonly key?: string;
  /** The one before, for the start that changes the key. */
  readonly previousKey?: string;
}

export interface LimitsConfig {
  /** Most bytes in one payload (`EVREG_ENVELOPE`, alias `SERVICE_ENVELOPE`). */
  readonly payloadBytes: number;
}

interface RetentionConfig {
  /** How long events are kept, in milliseconds; for good when absent. */
  readonly events?: number;
}

export interface DeliveryConfig {
  /** One deadline over connect, headers and body of an attempt. */
  readonly timeoutMs: number;
  /** Attempts under way at once, over all subscriptions. */
  readonly maxInFlight: number;
  /** Attempts under way at once for one subscription. */
  readonly maxInFlightPerSubscription: number;
  /** Lets handlers be `http:`. */
  readonly allowHttp: boolean;
  /**
   * A subscription whose attempts have all failed for so long is deactivated; in milliseconds, though the key takes a
   * duration such as `5d`. 0: never.
   */
  readonly disableAfter: number;
  /** CIDR blocks that handlers may be in although they are not globally routable. */
  readonly allowNetworks: readonly string[];
}

interface LogConfig {
  readonly level: "debug" | "info" | "warn" | "error" | "silent";
  /** `auto`: for people on a terminal, JSON elsewhere. */
  readonly format: "auto" | "pretty" | "json";
}

interface RemoteConfig {
  /** Without a slash at its end. */
  readonly url?: string;
  /** Meant for `url`, or for the server on this data folder where there is no `url`. */
  readonly token?: string;
  /** Lets the token go over `http:` to another machine. */
  readonly allowInsecureToken: boolean;
}
