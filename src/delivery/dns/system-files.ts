import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { Clock } from "../../runtime/clock.ts";

export const HOSTS_FILE =
  process.platform === "win32" ? String.raw`C:\Windows\System32\drivers\etc\hosts` : "/etc/hosts";

/** Addresses by name, in lower case, of a text in the form of `/etc/hosts`. */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const addresses = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, "");
      const known = addresses.get(key);
      if (known === undefined) addresses.set(key, [address]);
      else if (!known.includes(address)) known.push(address);
    }
  }
  return addresses;
}

/** How short names are completed, by `/etc/resolv.conf`: containers and clusters name their services so. */
interface SearchList {
  readonly domains: readonly string[];
  /** A name with fewer dots is completed first, and tried as it is last. */
  readonly ndots: number;
}

export const RESOLVER_FILE = "/etc/resolv.conf";
/** Each is another query, and all have to be answered before a name is known not to exist. */
const MAX_DOMAINS = 6;
const MAX_NDOTS = 15;

export function parseSearchList(text: string): SearchList {
  let domains: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/);
    // The last of several lines counts.
    if (keyword === "search" || keyword === "domain") {
      domains = values.map((value) => value.toLowerCase().replace(/\.$/, "")).filter((value) => value !== "");
    } else if (keyword === "options") {
      const ndotsText = values.map((value) => /^ndots:(\d{1,3})$/.exec(value)?.[1]).findLast(Boolean);
      if (ndotsText !== undefined) ndots = Math.min(MAX_NDOTS, Number(ndotsText));
    }
  }
  return { domains: domains.slice(0, MAX_DOMAINS), ndots };
}

/** The names to look up, in this order, until one has addresses. A name that ends in a dot is complete. */
export function candidateNames(hostname: string, { domains, ndots }: SearchList): readonly string[] {
  if (hostname.endsWith(".")) return [hostname.slice(0, -1)];
  const completed = domains.map((domain) => `${hostname}.${domain}`);
  const dots = hostname.split(".").length - 1;
  return dots >= ndots ? [hostname, ...completed] : [...completed, hostname];
}

/** A file is read again after so long. */
const READ_AFTER_MS = 5_000;

/** Reads the parsed content of a small text file of the system. One that cannot be read counts as empty. */
export function cachedFile<T>(clock: Clock, path: string, parse: (text: string) => T): () => Promise<T> {
  let content: Promise<T> | undefined;
  let readAtMs = -Infinity;

  async function read(): Promise<T> {
    const text = await readFile(path, "utf8").catch(() => "");
    return parse(text);
  }

  return () => {
    const nowMs = clock.monotonicMs();
    if (content !== undefined && nowMs - readAtMs < READ_AFTER_MS) return content;
    readAtMs = nowMs;
    return (content = read());
  };
}
