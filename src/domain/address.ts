import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = readonly [Address, number];

/** Why an address may not be connected to, as words that complete "… is not allowed: it is ". */
type Refusal = string;

export interface AddressRules {
  /**
   * The reason an address is refused, or `undefined` when it may be connected to.
   * @param address an IP address in its usual text form, without brackets; anything else is refused
   */
  refusal(address: string): Refusal | undefined;
}

/**
 * The rules for where deliveries may go: globally routable unicast, plus the networks an operator opened.
 *
 * `allowNetworks` are CIDR blocks or single addresses. They open private networks, loopback and the like, but never the
 * metadata services of clouds, however wide the block: nothing there takes webhooks, and one request there can give
 * away an operator's credentials. What is not a network is ignored; the configuration refuses it with words.
 */
export function createAddressRules(allowNetworks: readonly string[]): AddressRules {
  const opened = allowNetworks.map(parseNetwork).filter((network) => network !== undefined);
  return {
    refusal(text) {
      const address = parseAddress(text);
      if (address === undefined) return "not an IP address";
      if (METADATA.has(address.toNormalizedString())) return "a cloud's metadata service";
      if (opened.some((network) => within(address, network))) return undefined;
      return specialPurpose(address);
    },
  };
}

/** An address in the one form it is compared by; an IPv4-mapped one as the IPv4 address the system would connect to. */
export function canonicalAddress(text: string): string | undefined {
  return parseAddress(text)?.toNormalizedString();
}

/** A CIDR block or a single address, or `undefined` when the text is neither. */
export function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf("/");
  const base = slash === -1 ? text : text.slice(0, slash);
  if (isIP(base) === 0 || base.includes("%")) return undefined;
  const address = parseLiteral(base);
  const longest = address.kind() === "ipv4" ? 32 : 128;
  const digits = slash === -1 ? String(longest) : text.slice(slash + 1);
  if (!/^\d{1,3}$/.test(digits) || Number(digits) > longest) return undefined;
  const length = Number(digits);
  // ::ffff:10.0.0.0/104 is the IPv4 block 10.0.0.0/8, as mapped addresses are judged as IPv4.
  if (isV6(address) && address.isIPv4MappedAddress() && length >= 96) {
    return [address.toIPv4Address(), length - 96];
  }
  return [address, length];
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

function isV6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

function within(address: Address, [base, length]: Network): boolean {
  if (isV6(address)) return isV6(base) && address.match(base, length);
  return !isV6(base) && address.match(base, length);
}

function specialPurpose(address: Address): Refusal | undefined {
  if (!isV6(address)) return firstWithin(address, SPECIAL_V4);
  if (within(address, NAT64)) {
    // Where only IPv6 is spoken, every IPv4 host is reached through this prefix, so what lies behind it decides. A block
    // the operator opened opens the address itself, not what a translator elsewhere makes of it.
    const behind = new ipaddr.IPv4(address.toByteArray().slice(12));
    if (METADATA.has(behind.toString())) return "a cloud's metadata service";
    return firstWithin(behind, SPECIAL_V4);
  }
  if (!within(address, GLOBAL_V6))
    return firstWithin(address, NAMED_V6) ?? "outside the global unicast block";
  return firstWithin(address, SPECIAL_V6);
}

function firstWithin(
  address: Address,
  blocks: readonly (readonly [Network, Refusal])[],
): Refusal | undefined {
  return blocks.find(([network]) => within(address, network))?.[1];
}

function block(cidr: string, reason: Refusal): readonly [Network, Refusal] {
  const [base, length] = ipaddr.parseCIDR(cidr);
  return [[base, length], reason];
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
  block("64:ff9b:1::/48", "local translation, which hides an IPv4 address (RFC 8215)"),
  block("fc00::/7", "a private network (RFC 4193)"),
  block("fe80::/10", "link-local (RFC 4291)"),
  block("ff00::/8", "multicast (RFC 4291)"),
];

/** In normalised form. Azure's lies in public space; the others also fall to the tables above unless a block is opened. */
const METADATA: ReadonlySet<string> = new Set(
  [
    "169.254.169.254", // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack
    "169.254.169.253", // AWS: resolver
    "169.254.169.123", // AWS: time
    "169.254.170.2", // AWS: container credentials
    "169.254.170.23", // AWS: EKS pod credentials
    "169.254.0.23", // Tencent
    "169.254.42.42", // Scaleway
    "100.100.100.200", // Alibaba
    "168.63.129.16", // Azure: host agent
    "192.0.0.192", // Oracle
    "fd00:ec2::254", // AWS
    "fd00:ec2::23", // AWS: EKS pod credentials
    "fd20:ce::254", // Google
    "fd00:c1::a9fe:a9fe", // Oracle
    "fd00:42::42", // Scaleway
    "fe80::a9fe:a9fe", // OpenStack
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
);
