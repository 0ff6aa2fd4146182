import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { canonicalAddress } from "../domain/addresses.ts";

const ANY_IPV4 = "0.0.0.0";
const ANY_IPV6 = "::";

/** Beside 127.0.0.0/8. The unspecified address as a destination means loopback on most systems. */
const LOOPBACK: ReadonlySet<string | undefined> = new Set(["::1", ANY_IPV4, ANY_IPV6].map(canonicalAddress));

/**
 * Whether the address leads to this machine itself. Its interfaces are read anew each time, as they come and go.
 * @param canonical as `canonicalAddress` answers it
 */
export function isLocalAddress(canonical: string): boolean {
  if (canonical.startsWith("127.") || LOOPBACK.has(canonical)) return true;
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => canonicalAddress(address.replace(/%.*$/, "")) === canonical),
  );
}

/** Whether what answers at this URL runs here. A name is refused: others decide where it leads. */
export function isLocalUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, origin } = new URL(url);
  const address = canonicalAddress(hostname.replace(/^\[|\]$/g, ""));
  return protocol === "http:" && origin === url && address !== undefined && isLocalAddress(address);
}

/**
 * Every `address:port` that a listener bound to `address` answers at. A wildcard is among them as well, for the
 * addresses this machine gets later.
 */
export function localAddresses({ address: bound, port }: AddressInfo): string[] {
  if (bound !== ANY_IPV4 && bound !== ANY_IPV6) return [authority(bound, port)];
  const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  // `::` takes IPv4 too.
  const answering = interfaces.filter(({ family }) => bound === ANY_IPV6 || family === "IPv4");
  return [bound, ...answering.map(({ address }) => address)].map((address) => authority(address, port));
}

/** The URL that a command on this machine uses, by address, as a name could lead elsewhere tomorrow. */
export function urlOf({ address, port }: AddressInfo, scheme: "http" | "https" = "http"): string {
  const any = address === ANY_IPV4 || address === ANY_IPV6;
  return `${scheme}://${authority(any ? "127.0.0.1" : address, port)}`;
}

function authority(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
