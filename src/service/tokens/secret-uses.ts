import { LRUCache } from "lru-cache";
import type { Actor } from "../../domain/audit.ts";
import { EvregError } from "../../domain/error.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ClaimedSubscription } from "../../store/queue.ts";
import type { Store } from "../../store/store.ts";
import { existing } from "../requests.ts";

/** Consumers claim again and again: one use is noted this often. */
const NOTE_EVERY_MS = 3_600_000;
const MAX_USES = 1_000;

/** Secrets of subscriptions with which the deliveries of others are signed, and who asked for that. */
export class SecretUses {
  readonly #store: Store;
  readonly #clock: Clock;
  /** When each use was noted last, by token, subscription and consumer. */
  readonly #notedMs = new LRUCache<string, number>({ max: MAX_USES });

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * The subscription as one that signs; who uses its secret is in the audit before that.
   * @throws `not_found`, `invalid` for a secret that cannot be read
   */
  async signer(id: number, consumer: string, by: Actor): Promise<ClaimedSubscription> {
    const signer = existing(await this.#store.queue.findSendable(id), "subscription", id);
    if (signer.secret === undefined) {
      const message = `The secret of subscription ${id} cannot be read with the encryption key of this server, so nothing can be signed with it.`;
      throw new EvregError("invalid", message, { field: "sign_as", message, value: id });
    }
    const nowMs = this.#clock.monotonicMs();
    const use = JSON.stringify([by.tokenId, by.name, id, consumer]);
    const notedMs = this.#notedMs.get(use);
    if (notedMs === undefined || nowMs - notedMs >= NOTE_EVERY_MS) {
      await this.#store.catalog.noteSecretUse(id, consumer, this.#clock.now(), by);
      this.#notedMs.set(use, nowMs);
    }
    return signer;
  }
}
