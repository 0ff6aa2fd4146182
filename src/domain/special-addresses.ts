import ipaddr from "ipaddr.js";

export type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type Network = readonly [Address, number];

/** A network nothing is delivered to, and what it is for, as words that complete "… is not allowed: it is ". */
interface SpecialBlock {
  readonly network: Network;
  readonly reason: string;
}

export function isV6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

export function within(address: Address, [base, length]: Network): boolean {
  if (isV6(address)) return isV6(base) && address.match(base, length);
  return !isV6(base) && address.match(base, length);
}

/** Why an address is not one of globally routable unicast, or `undefined` when it is. */
export function specialPurpose(address: Address): string | undefined {
  if (!isV6(address)) return reasonIn(address, SPECIAL_V4);
  // Where only IPv6 is spoken, every IPv4 host is reached through this prefix: what lies behind it decides.
  if (within(address, NAT64)) return undefined;
  if (within(address, GLOBAL_V6)) return reasonIn(address, SPECIAL_V6);
  return reasonIn(address, NAMED_V6) ?? "outside 2000::/3, all there is of public IPv6";
}

function reasonIn(address: Address, blocks: readonly SpecialBlock[]): string | undefined {
  return blocks.find(({ network }) => within(address, network))?.reason;
}

function block(cidr: string, purpose: string): SpecialBlock {
  const [base, length] = ipaddr.parseCIDR(cidr);
  return { network: [base, length], reason: `in ${cidr}, ${purpose}` };
}

/** The IANA IPv4 Special-Purpose Address Registry, whole, and multicast. */
const SPECIAL_V4 = [
  block("0.0.0.0/8", "this host (RFC 791)"),
  block("10.0.0.0/8", "a private network (RFC 1918)"),
  block("100.64.0.0/10", "shared address space (RFC 6598)"),
  block("127.0.0.0/8", "loopback (RFC 1122)"),
  block("169.254.0.0/16", "link-local (RFC 3927)"),
  block("172.16.0.0/12", "a private network (RFC 1918)"),
  block("192.0.0.0/24", "reserved for protocols (RFC 6890)"),
  block("192.0.2.0/24", "reserved for documentation (RFC 5737)"),
  block("192.31.196.0/24", "an AS112 sink (RFC 7535)"),
  block("192.52.193.0/24", "a multicast tunnel (RFC 7450)"),
  block("192.88.99.0/24", "a 6to4 relay (RFC 7526)"),
  block("192.168.0.0/16", "a private network (RFC 1918)"),
  block("192.175.48.0/24", "an AS112 sink (RFC 7534)"),
  block("198.18.0.0/15", "reserved for benchmarks (RFC 2544)"),
  block("198.51.100.0/24", "reserved for documentation (RFC 5737)"),
  block("203.0.113.0/24", "reserved for documentation (RFC 5737)"),
  block("224.0.0.0/4", "multicast (RFC 5771)"),
  block("240.0.0.0/4", "reserved or broadcast (RFC 1112)"),
];

const GLOBAL_V6: Network = [ipaddr.parse("2000::"), 3];
const NAT64: Network = [ipaddr.parse("64:ff9b::"), 96];

/** What is special inside 2000::/3. Teredo (2001::/32), ORCHID and benchmarks all lie in 2001::/23. */
const SPECIAL_V6 = [
  block("2001::/23", "reserved for protocols (RFC 2928)"),
  block("2001:db8::/32", "reserved for documentation (RFC 3849)"),
  block("2002::/16", "6to4, which hides an IPv4 address (RFC 3056)"),
  block("2620:4f:8000::/48", "an AS112 sink (RFC 7534)"),
  block("3fff::/20", "reserved for documentation (RFC 9637)"),
];

/** Only for the words: everything outside 2000::/3 is refused, named here or not. */
const NAMED_V6 = [
  block("::/128", "this host (RFC 4291)"),
  block("::1/128", "loopback (RFC 4291)"),
  block("::/96", "an obsolete form of IPv4 addresses (RFC 4291)"),
  block("::ffff:0:0:0/96", "a translated form of IPv4 addresses (RFC 2765)"),
  block("64:ff9b:1::/48", "local translation, which hides an IPv4 address (RFC 8215)"),
  block("100::/63", "a sink (RFC 6666)"),
  block("5f00::/16", "segment routing (RFC 9602)"),
  block("fc00::/7", "a private network (RFC 4193)"),
  block("fe80::/10", "link-local (RFC 4291)"),
  block("fec0::/10", "an obsolete private network (RFC 3879)"),
  block("ff00::/8", "multicast (RFC 4291)"),
];
