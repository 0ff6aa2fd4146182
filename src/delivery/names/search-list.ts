/** How short names are completed, as `/etc/resolv.conf` says: containers and clusters name their services so. */
export interface SearchList {
  readonly domains: readonly string[];
  /** A name with fewer dots is completed first, and asked for as it is last. */
  readonly ndots: number;
}

export const RESOLVER_FILE = "/etc/resolv.conf";
/** Each is another question, and all have to be answered before a name is known not to exist. */
const MOST_DOMAINS = 6;
const MOST_NDOTS = 15;

export function parseSearchList(text: string): SearchList {
  let domains: readonly string[] = [];
  let ndots = 1;
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/);
    // Of several lines the last counts.
    if (keyword === "search" || keyword === "domain") {
      domains = values.map((value) => value.toLowerCase().replace(/\.$/, "")).filter((value) => value !== "");
    } else if (keyword === "options") {
      const told = values.map((value) => /^ndots:(\d{1,3})$/.exec(value)?.[1]).findLast(Boolean);
      if (told !== undefined) ndots = Math.min(MOST_NDOTS, Number(told));
    }
  }
  return { domains: domains.slice(0, MOST_DOMAINS), ndots };
}

/** The names to ask for, in turn, until one has addresses. A name that ends in a dot is complete. */
export function namesToAsk(hostname: string, { domains, ndots }: SearchList): readonly string[] {
  if (hostname.endsWith(".")) return [hostname.slice(0, -1)];
  const completed = domains.map((domain) => `${hostname}.${domain}`);
  const dots = hostname.split(".").length - 1;
  return dots >= ndots ? [hostname, ...completed] : [...completed, hostname];
}
