import { networkInterfaces } from "node:os";
import { canonicalAddress } from "../domain/address.ts";

/**
 * Whether one of this machine's interfaces has the address. Asked anew each time: interfaces come and go.
 * @param canonical as `canonicalAddress` answers it
 */
export function isOfThisMachine(canonical: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => canonicalAddress(address.replace(/%.*$/, "")) === canonical),
  );
}

/** Whether what answers at this URL runs here. A name is refused: whom it leads to is for others to say. */
export function leadsToThisMachine(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, origin } = new URL(url);
  const address = canonicalAddress(hostname.replace(/^\[|\]$/g, ""));
  if (protocol !== "http:" || origin !== url || address === undefined) return false;
  return address.startsWith("127.") || isOfThisMachine(address);
}
