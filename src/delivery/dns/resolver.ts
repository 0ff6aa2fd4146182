import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { isLocalhost } from "../../domain/handler-url.ts";
import { type Clock, sleep } from "../../runtime/clock.ts";
import {
  HOSTS_FILE,
  cachedFile,
  candidateNames,
  parseHosts,
  parseSearchList,
  RESOLVER_FILE,
} from "./system-files.ts";

interface HostNamesOptions {
  readonly clock: Clock;
  /** How long one look-up may take, completions of the name included. */
  readonly withinMs: number;
  /** DNS servers to use instead of the system's, as `address:port`. */
  readonly servers?: readonly string[] | undefined;
  /** How many names may be looked up at once. */
  readonly maxNames?: number;
  readonly hostsFile?: string;
  readonly resolverFile?: string;
}

/** Answers after which the next completion of a name is tried. */
const TRY_NEXT: ReadonlySet<unknown> = new Set(["ENOTFOUND", "ENODATA", "ESERVFAIL", "EBADNAME"]);
/** The servers' addresses are read from the system when a resolver is made, and they change: networks, VPNs. */
const RESOLVER_LIFE_MS = 60_000;
/** With one server that does not answer, a query is given up after 7.5 s, before an attempt usually is. */
const QUERY_OPTIONS = { timeout: 1_500, maxTimeout: 3_000, tries: 3 } as const;
/**
 * How long addresses of one family wait for those of the other. Some name servers never answer one of the two queries, and a
 * handler behind them would be out of reach.
 */
const OTHER_FAMILY_MS = 1_000;
/**
 * Where c-ares gets a malformed answer, it closes its connection to the name server, and some name servers close a TCP connection
 * themselves for one name that they do not like. Either counts as a failed try of all queries on the connection. So others'
 * look-ups fail: 4 in 10, of ten at once beside one such name. A resolver has connections of its own. One for each look-up
 * would cost 0.06 to 0.09 ms each time, where a look-up costs 0.16, and would not remember which name servers are dead.
 */
const CONNECTION_FAILED: ReadonlySet<string> = new Set(["EBADRESP", "ECONNREFUSED"]);
/**
 * There can be as many names as attempts. c-ares goes on for a while after an attempt has given up, and it must not come
 * near the 65,536 numbers that distinguish queries.
 */
const MAX_NAMES = 10_000;

interface DnsAnswer {
  readonly family: 4 | 6;
  readonly addresses: readonly string[];
  readonly error?: unknown;
}

/**
 * Looks names up as the system does, by its hosts file, its search list and its DNS servers, but without `dns.lookup`: that
 * waits on a thread, and a process has two for it, so two handlers with dead name servers would hold up all look-ups.
 */
export class HostNames {
  readonly #options: HostNamesOptions;
  readonly #hosts: () => Promise<ReturnType<typeof parseHosts>>;
  readonly #searchList: () => Promise<ReturnType<typeof parseSearchList>>;
  #current: Resolver | undefined;
  #previous: Resolver | undefined;
  #madeAtMs = 0;
  /** Each of these asks one query again, alone. */
  readonly #single = new Set<Resolver>();
  #pending = 0;

  constructor(options: HostNamesOptions) {
    const { clock, hostsFile = HOSTS_FILE, resolverFile = RESOLVER_FILE } = options;
    this.#options = options;
    this.#hosts = cachedFile(clock, hostsFile, parseHosts);
    this.#searchList = cachedFile(clock, resolverFile, parseSearchList);
  }

  /** Finds every address of a host name, or rejects with an error whose `syscall` is `getaddrinfo`, as `dns.lookup` does. */
  readonly resolve = async (hostname: string): Promise<readonly LookupAddress[]> => {
    const { clock, withinMs } = this.#options;
    const over = new AbortController();
    const late = sleep(clock, withinMs, over.signal).then(() =>
      Promise.reject(lookupError(hostname, "ETIMEOUT")),
    );
    try {
      const addresses = await Promise.race([this.#find(hostname, over.signal), late]);
      return addresses.map((address) => ({ address, family: isIP(address) }));
    } catch (error) {
      throw lookupError(hostname, codeOf(error));
    } finally {
      over.abort();
    }
  };

  /** Gives up all look-ups. */
  close(): void {
    this.#current?.cancel();
    this.#previous?.cancel();
    for (const resolver of this.#single) resolver.cancel();
  }

  async #find(hostname: string, over: AbortSignal): Promise<readonly string[]> {
    const plain = hostname.toLowerCase().replace(/\.$/, "");
    const listed = (await this.#hosts()).get(plain);
    if (listed !== undefined) return listed;
    if (isLocalhost(plain)) return ["127.0.0.1", "::1"];
    let failure: unknown;
    for (const name of candidateNames(hostname, await this.#searchList())) {
      if (over.aborted) break;
      try {
        return await this.#query(name);
      } catch (error) {
        failure = error;
        if (!TRY_NEXT.has(codeOf(error))) break;
      }
    }
    throw failure;
  }

  /** All addresses that DNS has for a name, the IPv4 ones first; rejects with the error of the server or of the way to it. */
  async #query(name: string): Promise<readonly string[]> {
    const { maxNames = MAX_NAMES } = this.#options;
    if (this.#pending >= maxNames) throw lookupError(name, "EAGAIN");
    const v4 = this.#ask(4, name);
    const v6 = this.#ask(6, name);
    this.#pending += 1;
    void Promise.all([v4, v6]).then(() => (this.#pending -= 1));
    const first = await Promise.race([v4, v6]);
    const other = first.family === 4 ? v6 : v4;
    const second = first.addresses.length > 0 ? await this.#withinMoment(other) : await other;
    const answers = first.family === 4 ? [first, second] : [second, first];
    const addresses = answers.flatMap((answer) => answer?.addresses ?? []);
    if (addresses.length > 0) return addresses;
    const errors = [first, second].map((answer) => answer?.error).filter((error) => error !== undefined);
    throw errors.find((error) => codeOf(error) !== "ENODATA") ?? errors[0] ?? lookupError(name, "ENOTFOUND");
  }

  async #ask(family: 4 | 6, name: string): Promise<DnsAnswer> {
    const answer = await answerOf(family, this.#resolver(), name);
    if (!CONNECTION_FAILED.has(codeOf(answer.error))) return answer;
    const alone = this.#newResolver();
    this.#single.add(alone);
    const second = await answerOf(family, alone, name);
    this.#single.delete(alone);
    return second;
  }

  #resolver(): Resolver {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#current === undefined || nowMs - this.#madeAtMs >= RESOLVER_LIFE_MS) {
      // Its queries are answered or given up long before it is dropped.
      this.#previous = this.#current;
      this.#current = this.#newResolver();
      this.#madeAtMs = nowMs;
    }
    return this.#current;
  }

  #newResolver(): Resolver {
    const { servers } = this.#options;
    const resolver = new Resolver(QUERY_OPTIONS);
    if (servers !== undefined) resolver.setServers(servers);
    return resolver;
  }

  async #withinMoment(answer: Promise<DnsAnswer>): Promise<DnsAnswer | undefined> {
    const over = new AbortController();
    try {
      return await Promise.race([
        answer,
        sleep(this.#options.clock, OTHER_FAMILY_MS, over.signal).then(() => undefined),
      ]);
    } finally {
      over.abort();
    }
  }
}

async function answerOf(family: 4 | 6, resolver: Resolver, name: string): Promise<DnsAnswer> {
  try {
    const addresses = family === 4 ? resolver.resolve4(name) : resolver.resolve6(name);
    return { family, addresses: await addresses };
  } catch (error) {
    return { family, addresses: [], error };
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code ?? "ENOTFOUND";
}

export function lookupError(hostname: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code, syscall: "getaddrinfo" });
}
