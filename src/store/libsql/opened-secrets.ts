import type { ClaimedSubscription } from "../claims.ts";
import { aboutSecret, Vault } from "../vault.ts";

/** A subscription's secrets as they lie in the file. */
export interface KeptSecrets {
  readonly secret: string;
  readonly previousSecret: string | null;
  readonly previousUntilMs: number | null;
  readonly bearer: "secret" | "own" | "none";
  readonly bearerToken: string | null;
}

type Opened = Pick<ClaimedSubscription, "secret" | "previous" | "bearer">;

const MOST_KEPT = 10_000;

/** Opens what claims bring, each subscription's once: to decrypt costs some microseconds, and claims come by the thousand. */
export class OpenedSecrets {
  readonly #vault: Vault;
  readonly #opened = new Map<number, { readonly kept: KeptSecrets; readonly opened: Opened }>();

  constructor(key: Uint8Array | undefined) {
    this.#vault = new Vault(key);
  }

  of(subscriptionId: number, kept: KeptSecrets): Opened {
    if (!this.#vault.encrypts) return this.#open(subscriptionId, kept);
    const known = this.#opened.get(subscriptionId);
    if (known !== undefined && isSame(known.kept, kept)) return known.opened;
    const opened = this.#open(subscriptionId, kept);
    if (this.#opened.size >= MOST_KEPT) this.#opened.clear();
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
