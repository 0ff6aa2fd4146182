import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { isLocalhost } from "../../domain/handler-url.ts";
import type { Clock } from "../../runtime/clock.ts";
import {
  HOSTS_FILE,
  CachedFile,
  candidateNames,
  parseHosts,
  parseSearchList,
  RESOLVER_FILE,
} from "./system-files.ts";

/** Finds every address of a host name, or fails with an error whose `syscall` is `getaddrinfo`, as `dns.lookup` does. */
export type Resolve = (
  hostname: string,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

export interface HostNames {
  readonly resolve: Resolve;
  /** Gives up all look-ups. */
  close(): void;
}

interface HostNamesOptions extends DnsOptions {
  /** How long one look-up may take, completions of the name included. */
  readonly withinMs: number;
  readonly hostsFile?: string;
  readonly resolverFile?: string;
}

/** Answers after which the next completion of a name is tried. */
const TRY_NEXT: ReadonlySet<unknown> = new Set(["ENOTFOUND", "ENODATA", "ESERVFAIL", "EBADNAME"]);

/**
 * Looks names up as the system does — its hosts file, its search list, its DNS servers — but not by its own means:
 * `dns.lookup` waits on a thread, two of which are all a process has for it, so that two handlers whose name servers
 * are dead would hold up every other handler's look-ups.
 */
export function createHostNames(options: HostNamesOptions): HostNames {
  const { clock, withinMs, hostsFile = HOSTS_FILE, resolverFile = RESOLVER_FILE } = options;
  const hosts = new CachedFile(clock, hostsFile, parseHosts);
  const searchList = new CachedFile(clock, resolverFile, parseSearchList);
  const dns = new Dns(options);

  async function find(hostname: string, isOver: () => boolean): Promise<readonly string[]> {
    const plain = hostname.toLowerCase().replace(/\.$/, "");
    const listed = (await hosts.read()).get(plain);
    if (listed !== undefined) return listed;
    if (isLocalhost(plain)) return ["127.0.0.1", "::1"];
    let failure: unknown;
    for (const name of candidateNames(hostname, await searchList.read())) {
      if (isOver()) break;
      try {
        return await dns.addresses(name);
      } catch (error) {
        failure = error;
        if (!TRY_NEXT.has(codeOf(error))) break;
      }
    }
    throw failure;
  }

  return {
    resolve(hostname, callback) {
      let isOver = false;
      const settle = (error: Error | null, addresses: readonly string[]): void => {
        if (isOver) return;
        isOver = true;
        cancel();
        callback(
          error,
          addresses.map((address) => ({ address, family: isIP(address) })),
        );
      };
      const fail = (error: unknown): void => settle(lookupError(hostname, codeOf(error)), []);
      const cancel = clock.setTimer(() => settle(lookupError(hostname, "ETIMEOUT"), []), withinMs);
      find(hostname, () => isOver).then((addresses) => settle(null, addresses), fail);
    },
    close: () => dns.close(),
  };
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code ?? "ENOTFOUND";
}

export function lookupError(hostname: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code, syscall: "getaddrinfo" });
}

/** The servers' addresses are read from the system when a resolver is made, and they change: networks, VPNs. */
const RESOLVER_LIFE_MS = 60_000;
/** With one server that does not answer, a query is given up after 7.5 s, before an attempt usually is. */
const QUERY_OPTIONS = { timeout: 1_500, maxTimeout: 3_000, tries: 3 } as const;
/**
 * How long addresses of one family wait for those of the other. There are name servers that never answer one of the two
 * queries, and so long a handler behind them would be out of reach.
 */
const OTHER_FAMILY_MS = 1_000;

/**
 * As many names as there can be attempts. c-ares goes on for a while after an attempt has given up, and it must not come
 * near the 65,536 numbers that distinguish queries.
 */
const MAX_NAMES = 10_000;

interface DnsOptions {
  readonly clock: Clock;
  /** DNS servers to use instead of the system's, as `address:port`. */
  readonly servers?: readonly string[] | undefined;
  /** How many names may be looked up at once. */
  readonly maxNames?: number;
}

interface Answer {
  readonly family: 4 | 6;
  readonly addresses: readonly string[];
  readonly error?: NodeJS.ErrnoException;
}

/**
 * Queries DNS servers for addresses without the threads that `dns.lookup` needs: a query that is not answered costs a little
 * memory and nobody else's time, however many there are.
 */
class Dns {
  readonly #clock: Clock;
  readonly #servers: readonly string[] | undefined;
  readonly #maxNames: number;
  #current: Resolver | undefined;
  #previous: Resolver | undefined;
  #madeAtMs = 0;
  #pending = 0;

  constructor({ clock, servers, maxNames = MAX_NAMES }: DnsOptions) {
    this.#clock = clock;
    this.#servers = servers;
    this.#maxNames = maxNames;
  }

  /** All addresses of a name, the IPv4 ones first; rejects with the error of the server or of the way to it. */
  async addresses(name: string): Promise<readonly string[]> {
    if (this.#pending >= this.#maxNames) {
      throw Object.assign(new Error("Too many names are being looked up."), { code: "EAGAIN" });
    }
    const resolver = this.#resolver();
    const v4 = settled(4, resolver.resolve4(name));
    const v6 = settled(6, resolver.resolve6(name));
    this.#pending += 1;
    void Promise.all([v4, v6]).then(() => (this.#pending -= 1));
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

  /** Gives up all queries. */
  close(): void {
    this.#current?.cancel();
    this.#previous?.cancel();
  }

  #resolver(): Resolver {
    const nowMs = this.#clock.now();
    // The clock may have been set back meanwhile.
    if (this.#current === undefined || Math.abs(nowMs - this.#madeAtMs) >= RESOLVER_LIFE_MS) {
      // Its queries are answered or given up long before it is dropped.
      this.#previous = this.#current;
      this.#current = new Resolver(QUERY_OPTIONS);
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

async function settled(family: 4 | 6, answer: Promise<string[]>): Promise<Answer> {
  try {
    return { family, addresses: await answer };
  } catch (error) {
    return { family, addresses: [], error: error as NodeJS.ErrnoException };
  }
}
