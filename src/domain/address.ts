import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { hiddenV4 } from "./hidden-v4.ts";
import { isMetadata } from "./metadata-addresses.ts";
import { type Address, isV6, type Network, specialPurpose, within } from "./special-addresses.ts";

/** Why an address may not be connected to, as words that complete "… is not allowed: it is ". */
type Refusal = string;

export interface AddressRules {
  /**
   * The reason an address is refused, or `undefined` when it may be connected to.
   * @param address an IP address in its usual text form, without brackets; anything else is refused
   */
  refusal(address: string): Refusal | undefined;
}

/** What `serve --dev` opens. */
export const LOOPBACK_NETWORKS: readonly string[] = ["127.0.0.0/8", "::1/128"];

/**
 * The rules for where deliveries may go: globally routable unicast, plus the networks an operator opened.
 *
 * `allowNetworks` are CIDR blocks or single addresses. They open private networks, loopback and the like. The metadata
 * services of clouds stay closed however wide a block is, unless one names that very address (`/32`, `/128`). What is
 * not a network is ignored; the configuration refuses it with words.
 */
export function createAddressRules(allowNetworks: readonly string[]): AddressRules {
  const opened = allowNetworks.map(parseNetwork).filter((network) => network !== undefined);
  return {
    refusal(text) {
      const address = parseAddress(text);
      if (address !== undefined) return refusalOf(address, opened);
      return isIP(text) === 0 ? "not an IP address" : "of one network interface only, as its zone says";
    },
  };
}

function refusalOf(address: Address, opened: readonly Network[]): Refusal | undefined {
  const around = opened.filter((network) => within(address, network));
  if (around.some(([base, length]) => length === longestPrefix(base))) return undefined;
  if (isMetadata(address)) return "a cloud's metadata service";
  const special = around.length > 0 ? undefined : specialPurpose(address);
  if (special !== undefined || !isV6(address)) return special;
  // A block of IPv4 opens what this machine reaches there; where a translator elsewhere leads is another matter, unless
  // its prefix was opened as well.
  const openedBehind = around.length > 0 ? opened : [];
  for (const behind of hiddenV4(address)) {
    const refused = refusalOf(behind, openedBehind);
    if (refused !== undefined) return `a form of ${behind.toString()}, which is ${refused}`;
  }
  return undefined;
}

/** An address in the one form it is compared by; an IPv4-mapped one as the IPv4 address the system would connect to. */
export function canonicalAddress(text: string): string | undefined {
  return parseAddress(text)?.toNormalizedString();
}

/** An address and the IPv4 addresses a translator would make of it, each as `canonicalAddress` answers it. */
export function reachedAddresses(text: string): readonly string[] {
  const address = parseAddress(text);
  if (address === undefined) return [];
  const hidden = isV6(address) ? hiddenV4(address) : [];
  return [address, ...hidden].map((each) => each.toNormalizedString());
}

/** A CIDR block or a single address, or `undefined` when the text is neither. */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf("/");
  const base = slash === -1 ? text : text.slice(0, slash);
  if (isIP(base) === 0 || base.includes("%")) return undefined;
  const address = parseLiteral(base);
  const longest = longestPrefix(address);
  const digits = slash === -1 ? String(longest) : text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(digits) || Number(digits) > longest) return undefined;
  const length = Number(digits);
  // ::ffff:10.0.0.0/104 is the IPv4 block 10.0.0.0/8, as mapped addresses are judged as IPv4.
  if (isV6(address) && address.isIPv4MappedAddress() && length >= 96) {
    return [address.toIPv4Address(), length - 96];
  }
  return [address, length];
}

function longestPrefix(address: Address): number {
  return isV6(address) ? 128 : 32;
}

function parseAddress(text: string): Address | undefined {
  // A zone (`fe80::1%eth0`) only exists for addresses that are not routable.
  if (isIP(text) === 0 || text.includes("%")) return undefined;
  const address = parseLiteral(text);
  return isV6(address) && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** ipaddr.js takes `::8.8.8.8` for `::ffff:8.8.8.8`, so dotted IPv6 goes through the URL parser, which writes it in hex. */
function parseLiteral(text: string): Address {
  const isDottedV6 = text.includes(":") && text.includes(".");
  return ipaddr.parse(isDottedV6 ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text);
}
