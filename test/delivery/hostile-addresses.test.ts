import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostNames } from "../../src/delivery/host-names.ts";
import { checkHandlerUrl } from "../../src/domain/handler-url.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { type Canaries, startCanaries } from "../support/canaries.ts";
import { words } from "../support/words.ts";
import { newSender, post, REFUSED } from "./sender-setup.ts";

let canaries: Canaries;
const folder = mkdtempSync(join(tmpdir(), "evreg-hosts-"));
const hostsFile = join(folder, "hosts");
writeFileSync(
  hostsFile,
  "127.0.0.1 intranet db.internal\n::1 intranet6\n10.0.0.1 two\n8.8.8.8 two\nfe80::1%lo scoped\n0.0.0.0 nowhere\n",
);
const names = new HostNames({ clock: systemClock, withinMs: 2_000, servers: ["127.0.0.1:9"], hostsFile });
const sender = newSender({ timeoutMs: 2_000, resolve: names.resolve });

beforeAll(async () => {
  canaries = await startCanaries();
});

afterAll(async () => {
  sender.close();
  names.close();
  await canaries.close();
  rmSync(folder, { recursive: true });
});

const hex = (value: number, digits = 0): string => value.toString(16).padStart(digits, "0");
const octal = (value: number, digits = 0): string => value.toString(8).padStart(digits, "0");

/** Every way of writing an IPv4 address that some parser takes for it. */
function spellingsV4(address: string): readonly string[] {
  const bytes = address.split(".").map(Number);
  const [a = 0, b = 0, c = 0, d = 0] = bytes;
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  const written = (write: (byte: number) => string): string => bytes.map(write).join(".");
  const groups = `${hex(a * 256 + b)}:${hex(c * 256 + d)}`;
  return [
    address,
    `${address}.`,
    String(whole),
    `${whole}.`,
    `0x${hex(whole)}`,
    `0X${hex(whole, 8).toUpperCase()}`,
    `0x${hex(whole, 16)}`,
    `0${octal(whole)}`,
    written((byte) => `0x${hex(byte)}`),
    written((byte) => `0X${hex(byte, 2).toUpperCase()}`),
    written((byte) => `0x${hex(byte, 8)}`),
    written((byte) => `0${octal(byte)}`),
    written((byte) => octal(byte, 6)),
    `0x${hex(a)}.${b}.0${octal(c)}.${d}`,
    `${a}.${b * 65_536 + c * 256 + d}`,
    `${a}.${b}.${c * 256 + d}`,
    `0x${hex(a)}.${b * 65_536 + c * 256 + d}`,
    `${a}.0x${hex(b)}.0${octal(c * 256 + d)}`,
    address.replaceAll(".", "。"),
    address.replaceAll(".", "．"),
    address.replaceAll(".", "｡"),
    address.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    address.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x1d7ce + Number(digit))),
    address.replaceAll(/[1-9]/g, (digit) => String.fromCodePoint(0x245f + Number(digit))),
    address.replaceAll(/\d/g, (digit) => `%3${digit}`),
    address.replaceAll(".", "%2e"),
    address.replaceAll(".", "%E3%80%82"),
    address.replace(".", "\u00ad."),
    `[::ffff:${address}]`,
    `[::FFFF:${groups}]`,
    `[0:0:0:0:0:ffff:${groups}]`,
    `[0000:0000:0000:0000:0000:ffff:${address}]`,
    `[::${address}]`,
    `[::${groups}]`,
    `[::ffff:0:${address}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b::${groups}]`,
    `[0064:FF9B:0:0:0:0:${groups}]`,
    `[64:ff9b:1::${address}]`,
    `[64:ff9b:1:${hex(a * 256 + b)}:${hex(c)}:${hex(d * 256)}::]`,
    `[2002:${groups}::]`,
    `[2002:${groups}::1]`,
    `[2001:0:${groups}::1]`,
    `[2001:0:808:808::${hex((a * 256 + b) ^ 0xffff)}:${hex((c * 256 + d) ^ 0xffff)}]`,
    `[2a00:1::5efe:${address}]`,
    `[2a00:1::200:5efe:${groups}]`,
    `[fe80::5efe:${address}]`,
  ];
}

/** One address or more in each network that is not public, and what is odd beside them. */
const OTHERS = words(`
  0.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 168.63.129.16 169.254.0.1 169.254.170.2 169.254.170.23 172.31.255.254
  192.0.0.1 192.0.0.192 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.2 192.175.48.1 198.18.0.1 198.51.100.1 203.0.113.1
  224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 0.0.0.0 0 0x0 00 0.0 [::] [::0.0.0.0]
  [::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0:1] [::2] [100::1] [100:0:0:1::1] [1fff::1]
  [2001::1] [2001:2::1] [2001:10::1] [2001:20::1] [2001:30::1] [2001:db8::1] [2620:4f:8000::1] [3fff::1] [4000::1]
  [5f00::1] [fc00::1] [fd00::1] [fd00::2] [fd00:ec2::254] [fd00:ec2::23] [fd20:ce::254] [fd00:a9fe:a9fe::1] [fe80::1]
  [fe80::a9fe:a9fe] [fe80::1234:5678:9abc] [febf::1] [fec0::1] [ff02::1] [ff0e::1] [64:ff9b:2::1]
  localhost LOCALHOST localhost. a.localhost a.b.localhost. ｌｏｃａｌｈｏｓｔ loc%61lhost`);

const HOSTS = [
  ...new Set([
    ...["127.0.0.1", "127.1.2.3", "127.255.255.254", "10.0.0.1", "192.168.1.1", "169.254.169.254"].flatMap(
      spellingsV4,
    ),
    ...OTHERS,
  ]),
];

/** Names that only a look-up tells are not allowed, and texts a URL cannot hold. */
const NAMES = ["intranet", "intranet.", "INTRANET", "db.internal", "intranet6", "two", "scoped", "nowhere"];
const BROKEN = words("[fe80::1%25lo] [fe80::1%lo] [::1 127.0.0.1.1 1.2.3.4.5 256.0.0.1 0x100000000 %00");

function send(host: string): Promise<unknown> {
  return post(sender, `http://${host}:${canaries.port}/hook`);
}

function register(host: string): string {
  return checkHandlerUrl("handler", `https://${host}/hook`, { allowHttp: false, allowNetworks: [] });
}

it("the test's canaries notice a connection, at each of their addresses", async () => {
  for (const host of canaries.addresses) {
    await new Promise((resolve, reject) => {
      connect({ host, port: canaries.port }).on("close", resolve).on("error", reject);
    });
  }
  expect(canaries.accepted).toBe(canaries.addresses.length);
});

describe("at registration and at connect", () => {
  it(`${HOSTS.length} spellings of addresses that are not public are refused, and nothing connects`, async () => {
    expect(HOSTS.length).toBeGreaterThanOrEqual(300);
    const before = canaries.accepted;
    for (const host of HOSTS) {
      expect(() => register(`${host}:${canaries.port}`), host).toThrow(/not allowed/);
      expect(await send(host), host).toEqual(REFUSED);
    }
    for (const address of canaries.addresses) {
      const host = address.includes(":") ? `[${address}]` : address;
      expect(await send(host), host).toEqual(REFUSED);
    }
    expect(canaries.accepted).toBe(before);
  });

  it("texts that are not hosts are refused as well", async () => {
    const before = canaries.accepted;
    for (const host of BROKEN) {
      expect(() => register(host), host).toThrow(/absolute URL/);
      expect(await send(host), host).toEqual({ errorCode: "protocol_error" });
    }
    expect(canaries.accepted).toBe(before);
  });
});

it.each(NAMES)("the name %s, which the hosts file points elsewhere, is refused at connect", async (name) => {
  const before = canaries.accepted;
  expect(await send(name)).toEqual(REFUSED);
  expect(canaries.accepted).toBe(before);
});
