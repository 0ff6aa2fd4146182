import * as fc from "fast-check";
import { BlockList } from "node:net";
import { describe, expect, it } from "vitest";
import { canonicalAddress, createAddressRules, parseNetwork } from "../../src/domain/addresses.ts";
import { words } from "../support/words.ts";

const closed = createAddressRules([]);

/** First, last and one in the middle of every block of the IPv4 special-purpose registry, and multicast. */
const REFUSED_V4 = `
  0.0.0.0 0.0.0.1 0.1.2.3 0.255.255.255
  10.0.0.0 10.0.0.1 10.20.30.40 10.255.255.255
  100.64.0.0 100.64.0.1 100.100.100.200 100.127.255.255
  127.0.0.0 127.0.0.1 127.0.0.53 127.1.1.1 127.255.255.255
  169.254.0.0 169.254.0.23 169.254.169.253 169.254.169.254 169.254.170.2 169.254.255.255
  172.16.0.0 172.16.0.1 172.17.0.1 172.20.10.5 172.31.255.255
  192.0.0.0 192.0.0.8 192.0.0.9 192.0.0.10 192.0.0.170 192.0.0.171 192.0.0.192 192.0.0.255
  192.0.2.0 192.0.2.1 192.0.2.255
  192.31.196.0 192.31.196.255
  192.52.193.0 192.52.193.255
  192.88.99.0 192.88.99.1 192.88.99.2 192.88.99.255
  192.168.0.0 192.168.0.1 192.168.178.1 192.168.255.255
  192.175.48.0 192.175.48.255
  198.18.0.0 198.18.0.1 198.19.255.255
  198.51.100.0 198.51.100.7 198.51.100.255
  203.0.113.0 203.0.113.9 203.0.113.255
  224.0.0.0 224.0.0.1 239.255.255.250 239.255.255.255
  240.0.0.0 250.1.2.3 255.255.255.254 255.255.255.255
  168.63.129.16`;

/** The neighbours of those blocks, which must not be lost to a prefix one bit too short. */
const ALLOWED_V4 = `
  1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
  169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0
  192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0
  192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0
  223.255.255.255 168.63.129.15 168.63.129.17 93.184.215.14 140.82.121.4`;

const REFUSED_V6 = `
  :: ::1 ::2 ::7f00:1 ::127.0.0.1 ::8.8.8.8 0:0:0:0:0:0:0:1 ::ffff:0:0
  ::ffff:127.0.0.1 ::ffff:7f00:1 0:0:0:0:0:ffff:7f00:0001 ::FFFF:10.0.0.1 ::ffff:169.254.169.254 ::ffff:168.63.129.16
  ::ffff:192.168.0.1 ::ffff:0.0.0.0 ::ffff:255.255.255.255 ::ffff:0:127.0.0.1
  64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b::168.63.129.16
  64:ff9b::192.168.1.1 64:ff9b::0.0.0.0 64:ff9b::224.0.0.1
  64:ff9b:1:: 64:ff9b:1::1 64:ff9b:1:ffff:ffff:ffff:127.0.0.1 64:ff9b:1::8.8.8.8 64:ff9b:2::1 64:ff9b:0:0:0:1::1
  100:: 100::1 100:0:0:1::1 200::1 400::1 800::1 1000::1 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:1::1 2001:1::2 2001:2::1 2001:3::1 2001:4:112::1 2001:10::1 2001:20::1
  2001:30::1 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8:: 2001:db8::1 2001:0db8:ffff:ffff::1
  2002:: 2002:7f00:1::1 2002:0808:0808::1 2002:a9fe:a9fe::1 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2620:4f:8000:: 2620:4f:8000::1 3fff:: 3fff::1 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
  4000:: 4000::1 5f00::1 6000::1 8000::1 a000::1 c000::1 e000::1 f000::1
  fc00:: fc00::1 fd00::1 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2a00:1::5efe:10.0.0.1 2a00:1::5efe:7f00:1 2606:4700::200:5efe:192.168.0.1 2a00:1::5efe:169.254.169.254
  2a00:64::169.254.169.254 2a00:64::a9fe:a9fe 2a00:64::6464:64c8 2a00:64::a83f:8110 fd00:a9fe:a9fe::1
  fe00::1 fe80:: fe80::1 fe80::a9fe:a9fe febf::1 fec0::1 feff::1 ff00::1 ff02::1 ff0e::1
  ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`;

const ALLOWED_V6 = `
  2000:: 2000::1 2001:200:: 2001:200::1 2001:4860:4860::8888 2001:db7:ffff::1 2001:db9::1 2001:ffff::1 2003::1
  2400:cb00::1 2600:1f18::1 2606:4700:4700::1111 2620:4f:7fff::1 2620:4f:8001::1 2a00:1450:4001::1
  2a00:1::5efe:8.8.8.8 2a00:1::200:5efe:808:808 2a00:64::8.8.8.8 2a00:1::5eff:10.0.0.1
  3ffe::1 3fff:1000::1 64:ff9b::8.8.8.8 64:ff9b::808:808 ::ffff:8.8.8.8 ::FFFF:808:808`;

describe("without opened networks", () => {
  it.each(words(REFUSED_V4))("refuses %s", (address) => {
    expect(closed.refusal(address)).toEqual(expect.any(String));
  });
  it.each(words(REFUSED_V4))("refuses ::ffff:%s", (address) => {
    expect(closed.refusal(`::ffff:${address}`)).toEqual(expect.any(String));
  });
  it.each(words(ALLOWED_V4))("allows %s, also mapped and behind NAT64", (address) => {
    expect(closed.refusal(address)).toBeUndefined();
    expect(closed.refusal(`::ffff:${address}`)).toBeUndefined();
    expect(closed.refusal(`64:ff9b::${address}`)).toBeUndefined();
  });
  it.each(words(REFUSED_V6))("refuses %s", (address) => {
    expect(closed.refusal(address)).toEqual(expect.any(String));
  });
  it.each(words(ALLOWED_V6))("allows %s", (address) => {
    expect(closed.refusal(address)).toBeUndefined();
  });
  it.each([
    ...words(`
      example.com 127.1 2130706433 0x7f000001 0177.0.0.1 1.1.1.1. 1.1.1.1/32 [2606:4700::1] 1.1.1 256.1.1.1 ::: 1::2::3`),
    "",
    " 1.1.1.1",
  ])("refuses %j, which is not an address in its usual form", (address) => {
    expect(closed.refusal(address)).toBe("not an IP address");
  });
  it.each(["2606:4700::1%eth0", "fe80::1%1"])("refuses %s, whatever is opened", (address) => {
    for (const rules of [closed, createAddressRules(["::/0", "fe80::/10"])]) {
      expect(rules.refusal(address)).toContain("one network interface");
    }
  });
  it("reports what a refused address is for, and the address inside it", () => {
    expect(closed.refusal("10.1.2.3")).toBe("a private network");
    expect(closed.refusal("64:ff9b::10.1.2.3")).toBe("a form of 10.1.2.3, which is a private network");
  });
});

/** Networks that an operator opened, what may be sent to then, what may not all the same, and why. */
const OPENED: readonly (readonly [
  what: string,
  networks: string,
  open: string,
  closed: string,
  why?: string,
])[] = [
  [
    "what they contain, and nothing else",
    "127.0.0.0/8 10.1.0.0/16 192.168.7.7 ::1/128 fd12:3456::/32",
    "127.0.0.1 127.255.255.255 10.1.0.0 10.1.255.255 192.168.7.7 ::1 fd12:3456::1 ::ffff:127.0.0.1 1.1.1.1",
    "10.0.255.255 10.2.0.0 192.168.7.6 192.168.7.8 ::2 fd12:3457::1 172.16.0.1",
  ],
  [
    // Translators of one's own may have prefixes such as fd64:: and 2a00:64::.
    "no metadata service, however wide the block",
    "0.0.0.0/0 ::/0 169.254.169.254/31 fd00::/8 64:ff9b::/96",
    "169.254.1.1 fe80::1",
    `169.254.169.254 ::ffff:169.254.169.254 168.63.129.16 100.100.100.200 192.0.0.192 169.254.170.2
      fd00:ec2::254 fd20:ce::254 64:ff9b::169.254.169.254 64:ff9b::168.63.129.16
      64:ff9b:1::169.254.169.254 64:ff9b:1:a9fe:a9:fe00:: 2002:a9fe:a9fe::1 2001:0:a9fe:a9fe::1
      2001:0:808:808::5601:5601 ::169.254.169.254 ::ffff:0:169.254.169.254 2a00:1::5efe:169.254.169.254
      2a00:1::200:5efe:169.254.169.254 fd64::169.254.169.254 2a00:64::100.100.100.200`,
    "a cloud's metadata service",
  ],
  [
    "a metadata service that is named itself",
    "168.63.129.16/32 fd00:ec2::254 ::ffff:100.100.100.200/128",
    "168.63.129.16 ::ffff:168.63.129.16 fd00:ec2::254 100.100.100.200",
    "64:ff9b::168.63.129.16 169.254.169.254 2002:a83f:8110::1",
  ],
  [
    "a translator, for the addresses behind it that are open",
    "64:ff9b::/96 64:ff9b:1::/48 2002::/16 10.0.0.0/8",
    "64:ff9b::10.1.2.3 64:ff9b::8.8.8.8 64:ff9b:1::10.1.2.3 64:ff9b:1:a01:2:300:: 2002:a01:203::1",
    "64:ff9b::127.0.0.1 64:ff9b:1::192.168.0.1 2002:7f00:1::1",
    "a form of",
  ],
  [
    "the address itself, not what a translator makes of it",
    "10.0.0.0/8 127.0.0.0/8",
    "10.0.0.1",
    "64:ff9b::10.0.0.1 2002:0a00:0001::1 ::10.0.0.1",
  ],
  [
    "the IPv4 block that a mapped one stands for",
    "::ffff:10.0.0.0/104",
    "10.9.9.9 ::ffff:10.9.9.9 11.0.0.1",
    "127.0.0.1",
  ],
  ["no IPv4 block with all of IPv6", "::/0", "fe80::1", "10.0.0.1"],
  ["no IPv6 block with all of IPv4", "0.0.0.0/0", "10.0.0.1", "fd00::1"],
];

for (const [what, networks, open, closedOnes, why = ""] of OPENED) {
  it(`opens ${what}`, () => {
    const rules = createAddressRules(words(networks));
    for (const address of words(open)) expect(rules.refusal(address), address).toBeUndefined();
    for (const address of words(closedOnes)) expect(rules.refusal(address), address).toContain(why);
  });
}

describe("parseNetwork", () => {
  it.each(
    words(`
    10.0.0.0/8 0.0.0.0/0 10.0.0.1 10.0.0.1/32 ::1 ::/0 fd00::/8 ::ffff:10.0.0.0/104`),
  )("takes %s", (text) => {
    expect(parseNetwork(text)).toBeDefined();
  });
  it.each([
    ...words(`
      / 10.0.0.0/ 10.0.0.0/33 10.0.0.0/-1 10.0.0.0/8.0 10.0.0.0/255.0.0.0 10.0.0.0/0x8 10.0.0/8 ::/129 fe80::1%1/64
      localhost`),
    "",
    "10.0.0.0/8 ",
  ])("refuses %j", (text) => {
    expect(parseNetwork(text)).toBeUndefined();
  });
});

describe("canonicalAddress", () => {
  it("gives one form for every spelling of an address", () => {
    expect(new Set(["127.0.0.1", "::ffff:127.0.0.1", "::FFFF:7f00:1"].map(canonicalAddress)).size).toBe(1);
    expect(new Set(["::1", "0:0:0:0:0:0:0:1", "0000::0001"].map(canonicalAddress)).size).toBe(1);
    expect(canonicalAddress("localhost")).toBeUndefined();
  });
});

/** The two last groups of an IPv6 address that are these four bytes. */
function hex([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string {
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

describe("any address at all", () => {
  /** The registries once more, for an implementation that has nothing in common with ours. */
  const special = new BlockList();
  for (const cidr of words(`
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.31.196.0/24
    192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4 168.63.129.16/32`)) {
    const [base = "", length = "32"] = cidr.split("/");
    special.addSubnet(base, Number(length), "ipv4");
  }
  const isSpecial = (address: string): boolean => special.check(address, "ipv4");

  const byte = fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(0, 10, 100, 127, 169, 254, 172, 16, 192, 168, 198, 18, 203, 224, 255),
  );
  const v4 = fc.tuple(byte, byte, byte, byte).map((bytes) => bytes.join("."));

  it("of IPv4 is refused where the IANA registry says so, and nowhere else", () => {
    fc.assert(
      fc.property(v4, (address) => {
        const forms = [address, `::ffff:${address}`, `64:ff9b::${address}`, `2a00:1::5efe:${address}`];
        const wrong = forms.filter((form) => (closed.refusal(form) !== undefined) !== isSpecial(address));
        if (wrong.length > 0) expect(wrong).toEqual([]);
      }),
      { numRuns: 3_000 },
    );
  });

  it("that contains a refused IPv4 address is refused, also where its own block is allowed", () => {
    const rules = createAddressRules(["2001::/16", "2002::/16", "64:ff9b::/96", "64:ff9b:1::/48", "::/16"]);
    fc.assert(
      fc.property(v4.filter(isSpecial), (address) => {
        const groups = hex(address.split(".").map(Number));
        const inverted = hex(address.split(".").map((part) => 255 - Number(part)));
        const forms = [
          `::ffff:0:${address}`,
          `64:ff9b::${address}`,
          `2002:${groups}::1`,
          `2001:0:${groups}:0:0:f7f7:f7f7`,
          `2001:0:808:808::${inverted}`,
        ];
        const taken = forms.filter((form) => typeof rules.refusal(form) !== "string");
        if (taken.length > 0) expect(taken).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("is checked as a whole, whatever the text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.ipV6(), fc.ipV4Extended()), (text) => {
        const refusal = closed.refusal(text);
        if (refusal === undefined) expect(canonicalAddress(text)).toBeDefined();
        const ofCapitals = closed.refusal(text.toUpperCase());
        if (ofCapitals !== refusal) expect(ofCapitals).toBe(refusal);
      }),
      { numRuns: 3_000 },
    );
  });
});
