import ipaddr from "ipaddr.js";

/**
 * The IPv4 addresses that an IPv6 address stands for where a translator or tunnel is reached: IPv4-compatible and
 * IPv4-translated, NAT64 (RFC 6052, RFC 8215), 6to4, Teredo (its server and its client) and ISATAP. An IPv4-mapped
 * address is no such thing: it is that IPv4 address.
 */
export function hiddenV4(address: ipaddr.IPv6): readonly ipaddr.IPv4[] {
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
  /** Only one of its places is in use, and nothing tells which; the others hold zeros. */
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
