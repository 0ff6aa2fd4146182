import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { readFile } from "node:fs/promises";
import { isLocalhost } from "../domain/handler-url.ts";
import { type Clock, sleep } from "../runtime/clock.ts";

interface HostNamesOptions {
  readonly clock: Clock;
  /** How long one look-up may take, completions of the name included. */
  readonly withinMs: number;
  /** DNS servers to use instead of the system's, as `address:port`. */
  readonly servers?: readonly string[] | undefined;
  readonly hostsFile?: string;
  readonly resolverFile?: string;
}

/** Answers after which the next completion of a name is tried. */
const TRY_NEXT: ReadonlySet<unknown> = new Set(["ENOTFOUND", "ENODATA", "ESERVFAIL", "EBADNAME"]);
/** With one server that does not answer, a query is given up after 7.5 s, before an attempt usually is. */
const QUERY_OPTIONS = { timeout: 1_500, maxTimeout: 3_000, tries: 3 } as const;
/**
 * How long addresses of one family wait for those of the other. Some name servers never answer one of the two queries, and a
 * handler behind them would be out of reach.
 */
const OTHER_FAMILY_MS = 1_000;

/**
 * Looks names up as the system does, by its hosts file, its search list and its DNS servers, but without `dns.lookup`: that
 * waits on a thread, and a process has two for it, so two handlers with dead name servers would hold up all look-ups.
 *
 * Each look-up has a resolver of its own, which reads the addresses of the DNS servers anew. A shared one has shared connections,
 * and c-ares closes them for a malformed answer to anybody, whose look-ups then fail together. It costs 0.1 ms for each new
 * connection to a handler, and a DNS server that is dead is tried first each time.
 */
export class HostNames {
  readonly #options: HostNamesOptions;
  /** Attempts that need the same name at the same time share one look-up, as a name server may be slow. */
  readonly #underWay = new Map<string, Promise<readonly LookupAddress[]>>();
  readonly #resolvers = new Set<Resolver>();

  constructor(options: HostNamesOptions) {
    this.#options = options;
  }

  /** Finds every address of a host name, or rejects with an error whose `syscall` is `getaddrinfo`, as `dns.lookup` does. */
  readonly resolve = (hostname: string): Promise<readonly LookupAddress[]> => {
    const underWay = this.#underWay.get(hostname);
    if (underWay !== undefined) return underWay;
    const lookup = this.#lookUp(hostname).finally(() => this.#underWay.delete(hostname));
    this.#underWay.set(hostname, lookup);
    return lookup;
  };

  /** Gives up all look-ups. */
  close(): void {
    for (const resolver of this.#resolvers) resolver.cancel();
  }

  async #lookUp(hostname: string): Promise<readonly LookupAddress[]> {
    const { clock, withinMs, servers } = this.#options;
    const over = new AbortController();
    const resolver = new Resolver(QUERY_OPTIONS);
    if (servers !== undefined) resolver.setServers(servers);
    this.#resolvers.add(resolver);
    const late = sleep(clock, withinMs, over.signal).then(() =>
      Promise.reject(lookupError(hostname, "ETIMEOUT")),
    );
    try {
      const addresses = await Promise.race([this.#find(hostname, resolver, over.signal), late]);
      return addresses.map((address) => ({ address, family: isIP(address) }));
    } catch (error) {
      throw lookupError(hostname, codeOf(error));
    } finally {
      over.abort();
      resolver.cancel();
      this.#resolvers.delete(resolver);
    }
  }

  async #find(hostname: string, resolver: Resolver, over: AbortSignal): Promise<readonly string[]> {
    const { hostsFile = HOSTS_FILE, resolverFile = RESOLVER_FILE } = this.#options;
    const plain = withoutDot(hostname.toLowerCase());
    const listed = listedIn(await textOf(hostsFile), plain);
    if (listed.length > 0) return listed;
    if (isLocalhost(plain)) return ["127.0.0.1", "::1"];
    let failure: unknown;
    for (const name of candidateNames(hostname, await textOf(resolverFile))) {
      if (over.aborted) break;
      try {
        return await this.#query(name, resolver, over);
      } catch (error) {
        failure = error;
        if (!TRY_NEXT.has(codeOf(error))) break;
      }
    }
    throw failure;
  }

  /** All addresses that DNS has for a name, the IPv4 ones first; rejects with the error of the server or of the way to it. */
  async #query(name: string, resolver: Resolver, over: AbortSignal): Promise<readonly string[]> {
    const found: (readonly string[])[] = [[], []];
    const errors: unknown[] = [];
    const asked = [resolver.resolve4(name), resolver.resolve6(name)].map((answer, family) =>
      answer.then(
        (addresses) => void (found[family] = addresses),
        (error: unknown) => void errors.push(error),
      ),
    );
    await Promise.race(asked);
    const wait = found.flat().length > 0 ? [sleep(this.#options.clock, OTHER_FAMILY_MS, over)] : [];
    await Promise.race([Promise.all(asked), ...wait]);
    const addresses = found.flat();
    if (addresses.length > 0) return addresses;
    throw errors.find((error) => codeOf(error) !== "ENODATA") ?? errors[0];
  }
}

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code ?? "ENOTFOUND";
}

export function lookupError(hostname: string, code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code, syscall: "getaddrinfo" });
}

const HOSTS_FILE =
  process.platform === "win32" ? String.raw`C:\Windows\System32\drivers\etc\hosts` : "/etc/hosts";

/** The addresses that a text in the form of `/etc/hosts` has for a name in lower case. */
function listedIn(hosts: string, name: string): readonly string[] {
  const lines = hosts.split("\n").map((line) => line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/));
  const listed = lines.filter(([, ...names]) => names.some((each) => withoutDot(each) === name));
  return [...new Set(listed.map(([address = ""]) => address))].filter((address) => isIP(address) !== 0);
}

const RESOLVER_FILE = "/etc/resolv.conf";

/**
 * The names to look up, in this order, until one has addresses: `/etc/resolv.conf` says how short ones are completed, as containers
 * and clusters name their services so. A name that ends in a dot is complete.
 */
function candidateNames(hostname: string, resolverText: string): readonly string[] {
  if (hostname.endsWith(".")) return [withoutDot(hostname)];
  // The last of several lines counts. systemd writes `search .` where there is nothing to complete.
  const lines = resolverText.replaceAll(/[#;].*/g, "");
  const search = [...lines.matchAll(/^[ \t]*(?:search|domain)[ \t]+(.*)$/gm)].at(-1)?.[1];
  const ndots = [...lines.matchAll(/^[ \t]*options[ \t].*\bndots:(\d+)/gm)].at(-1)?.[1] ?? 1;
  const domains = search?.match(/[^\s.]\S*/g)?.map(withoutDot) ?? [];
  const completed = domains.map((domain) => `${hostname}.${domain}`);
  const dots = hostname.split(".").length - 1;
  return dots >= Number(ndots) ? [hostname, ...completed] : [...completed, hostname];
}

function withoutDot(name: string): string {
  return name.replace(/\.$/, "");
}

/** A small text file of the system; one that cannot be read counts as empty. */
function textOf(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}
