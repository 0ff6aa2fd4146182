import { isIP } from "node:net";

export const HOSTS_FILE =
  process.platform === "win32" ? String.raw`C:\Windows\System32\drivers\etc\hosts` : "/etc/hosts";

/** Addresses by name, in lower case, of a text in the form of `/etc/hosts`. */
export function parseHosts(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    if (isIP(address) === 0) continue;
    for (const name of names) {
      const key = name.toLowerCase().replace(/\.$/, "");
      const known = found.get(key);
      if (known === undefined) found.set(key, [address]);
      else if (!known.includes(address)) known.push(address);
    }
  }
  return found;
}
