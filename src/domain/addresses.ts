import ipaddr from "ipaddr.js";
import { isIP } from "node:net";

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
  for (const behind of embeddedV4(address)) {
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
  const hidden = isV6(address) ? embeddedV4(address) : [];
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

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = readonly [Address, number];

/** A network nothing is delivered to, and what it is for, as words that complete "… is not allowed: it is ". */
interface SpecialBlock {
  readonly network: Network;
  readonly reason: string;
}

function isV6(address: Address): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

function within(address: Address, [base, length]: Network): boolean {
  if (isV6(address)) return isV6(base) && address.match(base, length);
  return !isV6(base) && address.match(base, length);
}

/** Why an address is not one of globally routable unicast, or `undefined` when it is. */
function specialPurpose(address: Address): string | undefined {
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

/**
 * Whether a cloud's metadata service, or a host agent like it, answers there: nothing there takes webhooks, and one
 * request can give away an operator's credentials.
 *
 * An IPv6 address that ends in such an IPv4 address is taken for a translator's form of it, whatever its prefix:
 * networks have translators with prefixes of their own.
 */
function isMetadata(address: Address): boolean {
  if (METADATA.has(address.toNormalizedString())) return true;
  if (!isV6(address)) return false;
  const last = new ipaddr.IPv4(address.toByteArray().slice(12));
  return [last, ...embeddedV4(address)].some((behind) => METADATA.has(behind.toString()));
}

/** In normalised form. Azure's lies in public space; the others also fall to the special blocks unless one is opened. */
const METADATA: ReadonlySet<string> = new Set(
  [
    "169.254.169.254", // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack, and most others
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
    "fd00:ec2::253", // AWS: resolver
    "fd00:ec2::123", // AWS: time
    "fd00:ec2::23", // AWS: EKS pod credentials
    "fd20:ce::254", // Google
    "fd00:a9fe:a9fe::1", // Akamai
    "fd00:42::42", // Scaleway
    "fe80::1234:5678:9abc", // Azure: host agent
  ].map((text) => ipaddr.parse(text).toNormalizedString()),
);

/**
 * The IPv4 addresses that an IPv6 address stands for where a translator or tunnel is reached: IPv4-compatible and
 * IPv4-translated, NAT64 (RFC 6052, RFC 8215), 6to4, Teredo (its server and its client) and ISATAP. An IPv4-mapped
 * address is no such thing: it is that IPv4 address.
 */
function embeddedV4(address: ipaddr.IPv6): readonly ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  // `::` and `::1` lie among the IPv4-compatible ones and are none.
  if (bytes.every((byte, index) => byte === 0 || (index === 15 && byte === 1))) return [];
  const found = FORMS.filter(({ prefix, at = 0 }) =>
    prefix.every((byte, index) => bytes[at + index] === byte),
  );
  return found.flatMap(({ places, inverted = false, skipsZero = false }) =>
    places
      .map((place) => place.map((index) => (bytes[index] ?? 0) ^ (inverted ? 0xff : 0)))
      .filter(([first]) => !skipsZero || first !== 0)
      .map((quad) => new ipaddr.IPv4(quad)),
  );
}

interface Form {
  /** The bytes it is known by, and where they begin. */
  readonly prefix: readonly number[];
  readonly at?: number;
  /** Which bytes are those of IPv4 addresses. */
  readonly places: readonly (readonly number[])[];
  readonly inverted?: boolean;
  /** Only one of its places is in use, and nothing shows which; the others hold zeros. */
  readonly skipsZero?: boolean;
}

const LAST = [12, 13, 14, 15];

const FORMS: readonly Form[] = [
  // IPv4-compatible, ::/96.
  { prefix: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], places: [LAST] },
  // IPv4-translated, ::ffff:0:0:0/96.
  { prefix: [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0], places: [LAST] },
  // NAT64, 64:ff9b::/96.
  { prefix: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], places: [LAST] },
  // Local NAT64, 64:ff9b:1::/48: split around byte 8 where the whole /48 is the prefix, else last.
  { prefix: [0, 0x64, 0xff, 0x9b, 0, 1], places: [[6, 7, 9, 10], LAST], skipsZero: true },
  // 6to4, 2002::/16.
  { prefix: [0x20, 0x02], places: [[2, 3, 4, 5]] },
  // Teredo, 2001::/32.
  { prefix: [0x20, 0x01, 0, 0], places: [[4, 5, 6, 7]] },
  { prefix: [0x20, 0x01, 0, 0], places: [LAST], inverted: true },
  // ISATAP, in any prefix.
  { prefix: [0, 0, 0x5e, 0xfe], at: 8, places: [LAST] },
  { prefix: [2, 0, 0x5e, 0xfe], at: 8, places: [LAST] },
];
