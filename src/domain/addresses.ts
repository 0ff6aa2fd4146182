import ipaddr from "ipaddr.js";
import { isIP } from "node:net";

export interface AddressRules {
  /**
   * Why an address may not be connected to, as words that complete "… is not allowed: it is "; `undefined` when it may.
   * @param address an IP address in its usual text form, without brackets; anything else is refused
   */
  refusal(address: string): string | undefined;
}

/** What `serve --dev` opens. */
export const LOOPBACK_NETWORKS: readonly string[] = ["127.0.0.0/8", "::1/128"];

/**
 * The rules for where deliveries may go: globally routable unicast, plus the networks an operator opened. The metadata
 * services of clouds stay closed unless a block names that very address (`/32`, `/128`).
 * @param allowNetworks CIDR blocks or single addresses; anything else is ignored, as the configuration refuses it
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

function refusalOf(address: IpAddress, opened: readonly Network[]): string | undefined {
  const around = opened.filter((network) => within(address, network));
  if (around.some(([base, length]) => length === longestPrefix(base))) return undefined;
  if (isMetadata(address)) return "a cloud's metadata service";
  const special = around.length > 0 ? undefined : specialPurpose(address);
  if (special !== undefined || !isV6(address)) return special;
  // A block of IPv4 opens what this machine reaches there, and what a translator reaches only if its prefix is open too.
  const openedBehind = around.length > 0 ? opened : [];
  for (const behind of embeddedV4(address)) {
    const refused = refusalOf(behind, openedBehind);
    if (refused !== undefined) return `a form of ${behind.toString()}, which is ${refused}`;
  }
  return undefined;
}

/** An address in a form that can be compared; an IPv4-mapped one as the IPv4 address the system would connect to. */
export function canonicalAddress(text: string): string | undefined {
  return parseAddress(text)?.toNormalizedString();
}

/** An address and the IPv4 addresses a translator would make of it, in canonical form. */
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
  const length = Number(digits);
  if (!/^\d{1,3}$/.test(digits) || length > longest) return undefined;
  // ::ffff:10.0.0.0/104 is the IPv4 block 10.0.0.0/8, as mapped addresses are judged as IPv4.
  if (isV6(address) && address.isIPv4MappedAddress() && length >= 96) {
    return [address.toIPv4Address(), length - 96];
  }
  return [address, length];
}

function longestPrefix(address: IpAddress): number {
  return isV6(address) ? 128 : 32;
}

function parseAddress(text: string): IpAddress | undefined {
  // A zone (`fe80::1%eth0`) only exists for addresses that are not routable.
  if (isIP(text) === 0 || text.includes("%")) return undefined;
  const address = parseLiteral(text);
  return isV6(address) && address.isIPv4MappedAddress() ? address.toIPv4Address() : address;
}

/** ipaddr.js takes `::8.8.8.8` for `::ffff:8.8.8.8`, so dotted IPv6 goes through the URL parser, which writes it in hex. */
function parseLiteral(text: string): IpAddress {
  const isDottedV6 = text.includes(":") && text.includes(".");
  return ipaddr.parse(isDottedV6 ? new URL(`http://[${text}]`).hostname.slice(1, -1) : text);
}

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6;
type Network = readonly [IpAddress, number];

function isV6(address: IpAddress): address is ipaddr.IPv6 {
  return address.kind() === "ipv6";
}

function within(address: IpAddress, [base, length]: Network): boolean {
  return address.kind() === base.kind() && address.match(base, length);
}

/** Why an address is not one of globally routable unicast, or `undefined` when it is. */
function specialPurpose(address: IpAddress): string | undefined {
  const range = address.range();
  // Where only IPv6 is spoken, every IPv4 host is reached through this prefix: what lies behind it decides.
  if (isV6(address) && within(address, NAT64)) return undefined;
  if (range !== "unicast") return RANGES[range] ?? range;
  if (!isV6(address) || within(address, GLOBAL_V6)) return undefined;
  return "outside 2000::/3, all there is of public IPv6";
}

const GLOBAL_V6: Network = [ipaddr.parse("2000::"), 3];
const NAT64: Network = [ipaddr.parse("64:ff9b::"), 96];

/** What the ranges of ipaddr.js are that a handler may well have. The names of all others say enough. */
const RANGES: Readonly<Record<string, string>> = {
  carrierGradeNat: "shared address space",
  linkLocal: "link-local",
  private: "a private network",
  reserved: "reserved, for documentation or for protocols",
  uniqueLocal: "a private network",
  unspecified: "this host",
};

/**
 * Whether a cloud's metadata service or host agent answers there: one request can give away an operator's credentials.
 * An IPv6 address that ends in such an IPv4 address counts, whatever its prefix, as networks have translators with prefixes
 * of their own.
 */
function isMetadata(address: IpAddress): boolean {
  if (METADATA.has(address.toNormalizedString())) return true;
  if (!isV6(address)) return false;
  const last = new ipaddr.IPv4(address.toByteArray().slice(12));
  return [last, ...embeddedV4(address)].some((behind) => METADATA.has(behind.toString()));
}

/** Normalized. Azure's is in public space; the special blocks hold the others too, unless one is opened. */
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

/** The IPv4 addresses that a translator or tunnel makes of an IPv6 address. An IPv4-mapped address is that IPv4 address. */
function embeddedV4(address: ipaddr.IPv6): readonly ipaddr.IPv4[] {
  const bytes = address.toByteArray();
  // `::` and `::1` lie among the IPv4-compatible ones and are none.
  if (bytes.every((byte, index) => byte === 0 || (index === 15 && byte === 1))) return [];
  const forms = FORMS.filter(({ network }) =>
    network === "isatap" ? isIsatap(bytes) : within(address, network),
  );
  return forms.flatMap(({ quads, isInverted = false, skipsZero = false }) =>
    quads
      .map((quad) => quad.map((index) => (bytes[index] ?? 0) ^ (isInverted ? 0xff : 0)))
      .filter(([first]) => !skipsZero || first !== 0)
      .map((quad) => new ipaddr.IPv4(quad)),
  );
}

/** ISATAP has any prefix, then `0:5efe` or `200:5efe`. */
function isIsatap(bytes: readonly number[]): boolean {
  return (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
}

interface Form {
  readonly network: Network | "isatap";
  /** Which bytes are those of IPv4 addresses. */
  readonly quads: readonly (readonly number[])[];
  readonly isInverted?: boolean;
  /** Only one of the quads is in use, and nothing shows which; the others hold zeros. */
  readonly skipsZero?: boolean;
}

const LAST = [12, 13, 14, 15];

const FORMS: readonly Form[] = [
  // IPv4-compatible, IPv4-translated and NAT64 (RFC 6052).
  { network: ipaddr.parseCIDR("::/96"), quads: [LAST] },
  { network: ipaddr.parseCIDR("::ffff:0:0:0/96"), quads: [LAST] },
  { network: NAT64, quads: [LAST] },
  // Local NAT64 (RFC 8215): split around byte 8 where the whole /48 is the prefix, else last.
  { network: ipaddr.parseCIDR("64:ff9b:1::/48"), quads: [[6, 7, 9, 10], LAST], skipsZero: true },
  // 6to4.
  { network: ipaddr.parseCIDR("2002::/16"), quads: [[2, 3, 4, 5]] },
  // Teredo: its server and its client.
  { network: ipaddr.parseCIDR("2001::/32"), quads: [[4, 5, 6, 7]] },
  { network: ipaddr.parseCIDR("2001::/32"), quads: [LAST], isInverted: true },
  { network: "isatap", quads: [LAST] },
];
