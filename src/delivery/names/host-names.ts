import type { LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { isLocalhost } from "../../domain/handler-url.ts";
import { Dns, type DnsOptions } from "./dns.ts";
import { HOSTS_FILE, parseHosts } from "./hosts-file.ts";
import { KeptFile } from "./kept-file.ts";
import { namesToAsk, parseSearchList, RESOLVER_FILE } from "./search-list.ts";

/** Finds every address of a host name, or fails with an error whose `syscall` is `getaddrinfo`, as `dns.lookup` does. */
export type Resolve = (
  hostname: string,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

export interface HostNames {
  readonly resolve: Resolve;
  /** Gives up all that is being looked up. */
  close(): void;
}

export interface HostNamesOptions extends DnsOptions {
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
  const hosts = new KeptFile(clock, hostsFile, parseHosts);
  const searchList = new KeptFile(clock, resolverFile, parseSearchList);
  const dns = new Dns(options);

  async function find(hostname: string, isOver: () => boolean): Promise<readonly string[]> {
    const plain = hostname.toLowerCase().replace(/\.$/, "");
    const listed = (await hosts.read()).get(plain);
    if (listed !== undefined) return listed;
    if (isLocalhost(plain)) return ["127.0.0.1", "::1"];
    let failure: unknown;
    for (const name of namesToAsk(hostname, await searchList.read())) {
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
