import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostNames } from "../../src/delivery/host-names.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { type Canaries, startCanaries } from "../support/canaries.ts";
import { type DnsRecord, type DnsServer, startDnsServer } from "../support/dns-server.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { lengthOf } from "../faults/length.ts";
import { newSender, post } from "./sender-setup.ts";

/** Stands for a public address: the one that is opened here. Its receiver shares its port with the canaries. */
const HARMLESS = "127.77.7.7";
/** After so long without an answer a question is repeated. */
const REPEATED_MS = 1_500;
const OPENED = [`${HARMLESS}/32`];

let dns: DnsServer;
let harmless: Receiver;
let canaries: Canaries;
/** Addresses of canaries, and forms of them, by the type of their record. */
let bad: { readonly A: readonly string[]; readonly AAAA: readonly string[] };

beforeAll(async () => {
  dns = await startDnsServer();
  harmless = await startReceiver({ host: HARMLESS });
  // The next attempt has to connect anew, and to look the name up for it.
  harmless.answer = () => ({ headers: { Connection: "close" } });
  canaries = await startCanaries(harmless.port);
  const v4 = canaries.addresses.filter((address) => !address.includes(":"));
  const v6 = canaries.addresses.filter((address) => address.includes(":"));
  bad = {
    A: [...v4, "0.0.0.0", "127.77.7.6", "127.77.7.8", "10.0.0.1", "169.254.169.254"],
    AAAA: [
      ...v6,
      ...v4.flatMap((address) => [`::ffff:${address}`, `::${address}`, `64:ff9b::${address}`]),
      "::",
      "fd00:ec2::254",
      "2002:7f00:1::1",
    ],
  };
});

afterAll(async () => {
  await canaries.close();
  await harmless.close();
  await dns.close();
});

type Answers = (round: number, type: "A" | "AAAA") => readonly DnsRecord[];

/** What a name answers, `round` by round of look-ups; `pick` takes the next bad address of a type. */
const SCENARIOS: Readonly<Record<string, (pick: (type: "A" | "AAAA") => string) => Answers>> = {
  "harmless first, then private": (pick) => (round, type) => {
    if (round === 0) return type === "A" ? [HARMLESS] : [];
    return [pick(type)];
  },
  "harmless first, then private, with an hour to live": (pick) => (round, type) => {
    const ttlSeconds = 3_600;
    if (round === 0) return type === "A" ? [{ data: HARMLESS, ttlSeconds }] : [];
    return [{ data: pick(type), ttlSeconds }];
  },
  "private first, then harmless, then private": (pick) => (round, type) => {
    if (round === 1) return type === "A" ? [HARMLESS] : [];
    return [pick(type)];
  },
  "one family harmless, the other private": (pick) => (_round, type) =>
    type === "A" ? [HARMLESS] : [pick("AAAA")],
  "harmless mapped into IPv6, private in IPv4": (pick) => (_round, type) =>
    type === "A" ? [pick("A")] : [`::ffff:${HARMLESS}`],
  "harmless and private together": (pick) => (_round, type) =>
    type === "A" ? [HARMLESS, pick("A"), HARMLESS] : [],
  "a private one after a hundred harmless ones": (pick) => (_round, type) =>
    type === "A" ? [...Array.from({ length: 100 }, () => HARMLESS), pick("A")] : [],
  "a chain of names that ends in private": (pick) => (_round, type) => [
    "a.chain.test",
    { name: "a.chain.test", data: "b.chain.test" },
    { name: "b.chain.test", data: pick(type) },
  ],
  "a chain of names, harmless on the way": (pick) => (_round, type) => [
    "a.chain.test",
    ...(type === "A" ? [{ name: "a.chain.test", data: HARMLESS }] : []),
    { name: "a.chain.test", data: "b.chain.test" },
    { name: "b.chain.test", data: pick(type) },
  ],
  "records of another name and of the wrong type": (pick) => (_round, type) => [
    { name: "other.test", data: pick(type) },
    pick(type === "A" ? "AAAA" : "A"),
    pick(type),
  ],
};

describe("rebinding", () => {
  const NAMES_EACH = lengthOf("delivery/rebinding")["names each"];
  const ROUNDS = 3;
  const ANSWERS = 25 * NAMES_EACH;

  it(`reaches none of the canaries in ${ANSWERS} answers`, async () => {
    expect(canaries.addresses).not.toContain(HARMLESS);
    const before = canaries.accepted;
    const plans = new Map<string, { readonly answers: Answers; round: number }>();
    let picked = 0;
    const pick = (type: "A" | "AAAA"): string => {
      picked += 1;
      return bad[type][picked % bad[type].length] ?? "127.0.0.1";
    };
    for (const [number, make] of Object.values(SCENARIOS).entries()) {
      for (let index = 0; index < NAMES_EACH; index += 1) {
        plans.set(`n${index}.s${number}.test`, { answers: make(pick), round: 0 });
      }
    }
    dns.answer = (name, type) => {
      const plan = plans.get(name);
      return plan === undefined ? "nxdomain" : plan.answers(plan.round, type);
    };
    const names = new HostNames({ clock: systemClock, withinMs: 5_000, servers: [dns.address] });
    const sender = newSender({ allowNetworks: OPENED, resolve: names.resolve, timeoutMs: 30_000 });
    const ended: Record<string, number> = {};
    for (const [name, plan] of plans) {
      for (plan.round = 0; plan.round < ROUNDS; plan.round += 1) {
        const asked = dns.questions.length;
        const startedMs = performance.now();
        const sent = await post(sender, `http://${name}:${harmless.port}/hook`);
        // No attempt asks twice: what was checked is what is connected to. Only a question that got no answer is repeated.
        if (performance.now() - startedMs < REPEATED_MS) expect(dns.questions.length - asked).toBe(2);
        const end = sent.errorCode ?? String(sent.statusCode);
        ended[end] = (ended[end] ?? 0) + 1;
      }
    }
    sender.close();
    names.close();
    expect(picked).toBeGreaterThanOrEqual(ANSWERS);
    expect(canaries.accepted).toBe(before);
    // What was harmless was delivered: once for each name of the first three scenarios.
    expect(ended).toEqual({ "200": 3 * NAMES_EACH, address_refused: 27 * NAMES_EACH });
  }, 60_000);
});
