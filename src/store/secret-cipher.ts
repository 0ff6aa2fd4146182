import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { type ErrorDetails, EvregError } from "../domain/error.ts";
import type { Bearer } from "../domain/subscription.ts";
import type { ClaimedSubscription } from "./queue.ts";

/** The beginning of an encrypted text. Secrets and bearer values have no space, so none begins like this. */
const MARK = "aes-256-gcm ";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Encrypts secrets, or leaves them as they are if there is no key.
 *
 * An encrypted text is `aes-256-gcm <key id> <base64 of nonce, tag and cipher text>`. What it is about (whose it is, and what for)
 * is authenticated with it, so that it cannot be opened in the place of another.
 */
export class Vault {
  readonly #key: KeyObject | undefined;
  /** `MARK` and the key's id, from which the key cannot be found. */
  readonly #head: string = "";

  /** @param key 32 bytes */
  constructor(key: Uint8Array | undefined) {
    if (key === undefined) return;
    this.#key = createSecretKey(key);
    const id = createHmac("sha256", this.#key).update("evreg key id").digest("hex").slice(0, 8);
    this.#head = `${MARK}${id} `;
  }

  seal(about: string, text: string): string {
    if (this.#key === undefined) return text;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce).setAAD(Buffer.from(about));
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return this.#head + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64");
  }

  /** What is stored with the secrets that the key encrypts; `undefined` where there is no key. */
  proof(): string | undefined {
    return this.#key === undefined ? undefined : this.seal(ABOUT_PROOF, PROOF);
  }

  /**
   * Opens a sealed text. Answers `undefined` if it was sealed under another key or about something else, or was changed since;
   * with a key also if it is not sealed at all, as only somebody else can have put it there.
   */
  open(about: string, stored: string): string | undefined {
    if (this.#key === undefined) return stored.startsWith(MARK) ? undefined : stored;
    if (!stored.startsWith(this.#head)) return undefined;
    const bytes = Buffer.from(stored.slice(this.#head.length), "base64");
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

/** The owner of a secret: the subscriptions of this name to several actions share it. */
export interface SecretOwner {
  readonly application: string;
  readonly subscription: string;
}

/** @param purpose a previous secret has the one that it had */
export function aboutSecret(
  { application, subscription }: SecretOwner,
  purpose: "secret" | "bearer token",
): string {
  return JSON.stringify([purpose, application, subscription]);
}

/** The keys that the file's secrets are, or are to be, encrypted with, each of 32 bytes. */
export interface EncryptionKeys {
  readonly key: Uint8Array;
  /** The previous key, while the key is being changed. */
  readonly previous?: Uint8Array;
}

// Data whose secrets are encrypted hold a known text under the same key, which tells whether a key is the right one.

const ABOUT_PROOF = "proof of the key";
const PROOF = "evreg";

/** What opens the secrets as they are stored, and what seals them as they are to be. */
export interface Vaults {
  readonly current: Vault;
  readonly next: Vault;
  /** Whether the next key is another one than that of the data, or its first one. */
  readonly isNewKey: boolean;
}

/**
 * @param stored the proof; `undefined` where secrets are not encrypted
 * @param place what messages call the data, and `details` what errors have of it
 * @throws EvregError `usage` where none of the keys opens the secrets
 */
export function vaultsFor(
  stored: string | undefined,
  keys: EncryptionKeys | undefined,
  place: string,
  details: ErrorDetails = {},
): Vaults {
  const next = new Vault(keys?.key);
  if (stored === undefined) return { current: new Vault(undefined), next, isNewKey: keys !== undefined };
  const opens = (vault: Vault): boolean => vault.open(ABOUT_PROOF, stored) === PROOF;
  const current = [next, new Vault(keys?.previous)].find(opens);
  if (current !== undefined) return { current, next, isNewKey: current !== next };
  const why = keys === undefined ? "no key was given" : "no key that was given is the one";
  const message = `${place} has encrypted secrets, and ${why}: set EVREG_ENCRYPTION_KEY or EVREG_ENCRYPTION_KEY_FILE to the key they were encrypted with or, to change the key, EVREG_ENCRYPTION_KEY_PREVIOUS. Nothing was changed.`;
  throw new EvregError("usage", message, details);
}

export interface StoredSecrets {
  readonly secret: string;
  readonly previousSecret: string | null;
  readonly previousUntilMs: number | null;
  readonly bearer: Bearer;
  readonly bearerToken: string | null;
}

/** Answers what a claim brings of a subscription's secrets; `secret` is absent where they cannot be read. */
export function openSecrets(
  vault: Vault,
  owner: SecretOwner,
  stored: StoredSecrets,
): Pick<ClaimedSubscription, "secret" | "previous" | "bearer"> {
  const { previousSecret, previousUntilMs: untilMs, bearer, bearerToken } = stored;
  const about = aboutSecret(owner, "secret");
  const own = bearerToken === null ? undefined : vault.open(aboutSecret(owner, "bearer token"), bearerToken);
  const previous = previousSecret === null ? undefined : vault.open(about, previousSecret);
  // Without its own bearer value nothing is sent.
  const isReadable = bearer !== "own" || own !== undefined;
  return {
    secret: isReadable ? vault.open(about, stored.secret) : undefined,
    ...(previous === undefined || untilMs === null ? {} : { previous: { secret: previous, untilMs } }),
    ...(bearer === "secret" ? {} : { bearer: own ?? null }),
  };
}
