import { Resolver } from "node:dns/promises";
import type { Clock } from "../../runtime/clock.ts";

/** The servers' addresses are read from the system when a resolver is made, and they change: networks, VPNs. */
const RESOLVER_LIFE_MS = 60_000;
/** With one server that does not answer, a question is given up after 7.5 s, before an attempt usually is. */
const ASKING = { timeout: 1_500, maxTimeout: 3_000, tries: 3 } as const;
/**
 * How long addresses of one family wait for those of the other. There are name servers that never answer one of the two
 * questions, and so long a handler behind them would be out of reach.
 */
const OTHER_FAMILY_MS = 1_000;

/**
 * As many names as there can be attempts. c-ares goes on asking for a while after an attempt has given
 * up, and it must not come near the 65,536 numbers that tell questions apart.
 */
const MOST_NAMES = 10_000;

export interface DnsOptions {
  readonly clock: Clock;
  /** DNS servers to ask instead of the system's, as `address:port`. */
  readonly servers?: readonly string[];
  /** Names asked for at once. */
  readonly mostNames?: number;
}

interface Answer {
  readonly family: 4 | 6;
  readonly addresses: readonly string[];
  readonly error?: NodeJS.ErrnoException;
}

/**
 * Asks DNS servers for addresses without the threads `dns.lookup` needs: a question that is not answered costs a little
 * memory and nobody else's time, however many there are.
 */
export class Dns {
  readonly #clock: Clock;
  readonly #servers: readonly string[] | undefined;
  readonly #mostNames: number;
  #current: Resolver | undefined;
  #previous: Resolver | undefined;
  #madeAtMs = 0;
  #underWay = 0;

  constructor({ clock, servers, mostNames = MOST_NAMES }: DnsOptions) {
    this.#clock = clock;
    this.#servers = servers;
    this.#mostNames = mostNames;
  }

  /** All addresses of a name, the IPv4 ones first; rejects with the error of the server or of the way to it. */
  async addresses(name: string): Promise<readonly string[]> {
    if (this.#underWay >= this.#mostNames) {
      throw Object.assign(new Error("Too many names are being looked up."), { code: "EAGAIN" });
    }
    const resolver = this.#resolver();
    const v4 = asked(4, resolver.resolve4(name));
    const v6 = asked(6, resolver.resolve6(name));
    this.#underWay += 1;
    void Promise.all([v4, v6]).then(() => (this.#underWay -= 1));
    const first = await Promise.race([v4, v6]);
    const other = first.family === 4 ? v6 : v4;
    const second = first.addresses.length > 0 ? await this.#within(OTHER_FAMILY_MS, other) : await other;
    const answers = [first, ...(second === undefined ? [] : [second])];
    const found = answers
      .toSorted((one, two) => one.family - two.family)
      .flatMap(({ addresses }) => addresses);
    if (found.length > 0) return found;
    const errors = answers.map(({ error }) => error).filter((error) => error !== undefined);
    throw errors.find(({ code }) => code !== "ENODATA") ?? errors[0] ?? new Error(`${name} has no address`);
  }

  /** Gives up all that is asked. */
  close(): void {
    this.#current?.cancel();
    this.#previous?.cancel();
  }

  #resolver(): Resolver {
    const nowMs = this.#clock.now();
    // The clock may have been set back meanwhile.
    if (this.#current === undefined || Math.abs(nowMs - this.#madeAtMs) >= RESOLVER_LIFE_MS) {
      // What was asked of it is answered or given up long before it is forgotten.
      this.#previous = this.#current;
      this.#current = new Resolver(ASKING);
      if (this.#servers !== undefined) this.#current.setServers(this.#servers);
      this.#madeAtMs = nowMs;
    }
    return this.#current;
  }

  async #within<T>(limitMs: number, promise: Promise<T>): Promise<T | undefined> {
    const { promise: over, resolve } = Promise.withResolvers<undefined>();
    const cancel = this.#clock.setTimer(() => resolve(undefined), limitMs);
    try {
      return await Promise.race([promise, over]);
    } finally {
      cancel();
    }
  }
}

async function asked(family: 4 | 6, answer: Promise<string[]>): Promise<Answer> {
  try {
    return { family, addresses: await answer };
  } catch (error) {
    return { family, addresses: [], error: error as NodeJS.ErrnoException };
  }
}
