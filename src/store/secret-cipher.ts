import { LRUCache } from "lru-cache";
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import type { ClaimedSubscription } from "./queue.ts";

/** Begins what is encrypted. The space in it keeps it apart from secrets and bearer values, which have none. */
const MARK = "aes-256-gcm ";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * How secrets are kept: encrypted under a key, or as they are where there is none.
 *
 * Encrypted, a text is `aes-256-gcm <key id> <base64 of nonce, tag and cipher text>`. What it is about (which
 * subscription's, and what for) is authenticated with it, so that one put in the place of another cannot be opened.
 */
export class Vault {
  readonly #key: KeyObject | undefined;
  /** `MARK` and the key's id, which tells keys apart and tells nothing of them. */
  readonly #head: string = "";

  /** @param key 32 bytes */
  constructor(key: Uint8Array | undefined) {
    if (key === undefined) return;
    this.#key = createSecretKey(key);
    const id = createHmac("sha256", this.#key).update("evreg key id").digest("hex").slice(0, 8);
    this.#head = `${MARK}${id} `;
  }

  get encrypts(): boolean {
    return this.#key !== undefined;
  }

  seal(about: string, text: string): string {
    if (this.#key === undefined) return text;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce).setAAD(Buffer.from(about));
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return this.#head + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64");
  }

  /**
   * `undefined` for what was sealed under another key or about something else, or was changed since; with a key also for
   * what is not sealed at all, as only somebody else can have put it there.
   */
  open(about: string, kept: string): string | undefined {
    if (this.#key === undefined) return kept.startsWith(MARK) ? undefined : kept;
    if (!kept.startsWith(this.#head)) return undefined;
    const bytes = Buffer.from(kept.slice(this.#head.length), "base64");
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const sealed = bytes.subarray(NONCE_BYTES + TAG_BYTES);
    try {
      const decipher = createDecipheriv("aes-256-gcm", this.#key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(about))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([decipher.update(sealed), decipher.final()]).toString("utf8");
    } catch {
      return undefined;
    }
  }
}

/** What a kept text is about: of which subscription, and what for. */
export function aboutSecret(
  subscriptionId: number,
  purpose: "secret" | "previous secret" | "bearer token",
): string {
  return `${purpose} of subscription ${subscriptionId}`;
}

/** What the file's secrets are, or are to be, encrypted with; each key 32 bytes. */
export interface EncryptionKeys {
  readonly key: Uint8Array;
  /** The one before, while the key is being changed. */
  readonly previous?: Uint8Array;
}

/** A subscription's secrets as they lie in the file. */
export interface KeptSecrets {
  readonly secret: string;
  readonly previousSecret: string | null;
  readonly previousUntilMs: number | null;
  readonly bearer: "secret" | "own" | "none";
  readonly bearerToken: string | null;
}

type Opened = Pick<ClaimedSubscription, "secret" | "previous" | "bearer">;

const MAX_SUBSCRIPTIONS = 10_000;

/** Opens what claims bring, each subscription's once: to decrypt costs some microseconds, and claims come by the thousand. */
export class OpenedSecrets {
  readonly #vault: Vault;
  readonly #opened = new LRUCache<number, { readonly kept: KeptSecrets; readonly opened: Opened }>({
    max: MAX_SUBSCRIPTIONS,
  });

  constructor(key: Uint8Array | undefined) {
    this.#vault = new Vault(key);
  }

  of(subscriptionId: number, kept: KeptSecrets): Opened {
    if (!this.#vault.encrypts) return this.#open(subscriptionId, kept);
    const known = this.#opened.get(subscriptionId);
    if (known !== undefined && isSame(known.kept, kept)) return known.opened;
    const opened = this.#open(subscriptionId, kept);
    this.#opened.set(subscriptionId, { kept, opened });
    return opened;
  }

  #open(id: number, kept: KeptSecrets): Opened {
    const { secret, previousSecret, previousUntilMs, bearer, bearerToken } = kept;
    const own =
      bearerToken === null ? undefined : this.#vault.open(aboutSecret(id, "bearer token"), bearerToken);
    const before =
      previousSecret === null || previousUntilMs === null
        ? undefined
        : this.#vault.open(aboutSecret(id, "previous secret"), previousSecret);
    // Without the bearer value it should have, it is not sent either.
    const isWhole = bearer !== "own" || own !== undefined;
    return {
      secret: isWhole ? this.#vault.open(aboutSecret(id, "secret"), secret) : undefined,
      ...(before === undefined ? {} : { previous: { secret: before, untilMs: previousUntilMs! } }),
      ...(bearer === "secret" ? {} : { bearer: own ?? null }),
    };
  }
}

function isSame(one: KeptSecrets, other: KeptSecrets): boolean {
  return (
    one.secret === other.secret &&
    one.previousSecret === other.previousSecret &&
    one.previousUntilMs === other.previousUntilMs &&
    one.bearer === other.bearer &&
    one.bearerToken === other.bearerToken
  );
}
