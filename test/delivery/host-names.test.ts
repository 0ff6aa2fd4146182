import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HostNames } from "../../src/delivery/host-names.ts";
import { type DnsServer, startDnsServer, words } from "../support/dns-server.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";

let server: DnsServer;
let clock: ManualClock;
let names: HostNames;
let folder: string;

beforeEach(async () => {
  server = await startDnsServer();
  clock = new ManualClock();
  folder = await mkdtemp(join(tmpdir(), "evreg-names-"));
  names = new HostNames({
    clock,
    withinMs: 10_000,
    servers: [server.address],
    hostsFile: join(folder, "hosts"),
    resolverFile: join(folder, "resolv.conf"),
  });
});

afterEach(async () => {
  names.close();
  await server.close();
  await rm(folder, { recursive: true });
});

const asked = (): string[] => server.questions.filter((question) => question.startsWith("A "));
const hosts = (text: string): Promise<void> => writeFile(join(folder, "hosts"), text);
const resolver = (text: string): Promise<void> => writeFile(join(folder, "resolv.conf"), text);

/** The addresses, or the code of the error. */
function lookUp(hostname: string): Promise<readonly string[] | string | undefined> {
  return names.resolve(hostname).then(
    (addresses) => addresses.map(({ address }) => address),
    ({ code }: NodeJS.ErrnoException) => code,
  );
}

describe("a name", () => {
  it("has the addresses of both families, in one answer or several", async () => {
    server.answer = (_name, type) => (type === "A" ? ["192.0.2.1", "192.0.2.2"] : ["2001:db8::1"]);
    expect(await lookUp("a.test")).toEqual(["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
    expect(server.questions.toSorted()).toEqual(["A a.test", "AAAA a.test"]);
    const addresses = await names.resolve("a.test");
    expect(addresses.map(({ family }) => family)).toEqual([4, 4, 6]);
  });

  it("may have addresses of one family only, or a name server that fails for the other", async () => {
    for (const other of [[], "servfail", "nxdomain"] as const) {
      server.answer = (_name, type) => (type === "A" ? ["192.0.2.1"] : other);
      expect(await lookUp("a.test")).toEqual(["192.0.2.1"]);
      server.answer = (_name, type) => (type === "AAAA" ? ["2001:db8::1"] : other);
      expect(await lookUp("a.test")).toEqual(["2001:db8::1"]);
    }
  });

  it("does not wait long for the other family where a name server does not answer for it", async () => {
    server.answer = (_name, type) => (type === "A" ? ["192.0.2.1"] : "silent");
    const found = lookUp("a.test");
    await until("the first family to be there", () => clock.pending === 2);
    await clock.advance(1_000);
    expect(await found).toEqual(["192.0.2.1"]);
    expect(clock.pending).toBe(0);
  });

  it("is followed through CNAMEs", async () => {
    server.answer = (_name, type) =>
      type === "A"
        ? ["b.test", { name: "b.test", data: "c.test" }, { name: "c.test", data: "192.0.2.9" }]
        : ["b.test"];
    expect(await lookUp("a.test")).toEqual(["192.0.2.9"]);
  });

  it("can have hundreds of addresses, which come over TCP", async () => {
    const many = Array.from({ length: 300 }, (_, index) => `192.0.2.${index % 250}`);
    server.answer = (_name, type) => (type === "A" ? many : []);
    expect(await lookUp("many.test")).toHaveLength(300);
  });

  it("is looked up anew each time, whatever its time to live", async () => {
    let last = 0;
    server.answer = (_name, type) =>
      type === "A" ? [{ data: `192.0.2.${(last += 1)}`, ttlSeconds: 3_600 }] : [];
    expect(await lookUp("a.test")).toEqual(["192.0.2.1"]);
    expect(await lookUp("a.test")).toEqual(["192.0.2.2"]);
  });

  it("is looked up once for all who need it at the same time", async () => {
    server.answer = (_name, type) => (type === "A" ? ["192.0.2.1"] : []);
    const found = await Promise.all(Array.from({ length: 20 }, () => lookUp("a.test")));
    expect(found).toEqual(Array.from({ length: 20 }, () => ["192.0.2.1"]));
    expect(asked()).toHaveLength(1);
  });

  it("may be one label, hold an underscore or end in a dot", async () => {
    server.answer = (_name, type) => (type === "A" ? ["192.0.2.1"] : []);
    for (const name of ["app", "my_app", "app.test.", "xn--bcher-kva.test"]) {
      expect(await lookUp(name), name).toEqual(["192.0.2.1"]);
    }
    expect(server.questions).toContain("A my_app");
    expect(server.questions).toContain("A app.test");
  });

  it.each([
    ["nxdomain", "ENOTFOUND"],
    ["servfail", "ESERVFAIL"],
    [[], "ENODATA"],
  ] as const)("with the answer %j is not found", async (answer, code) => {
    server.answer = () => answer;
    expect(await lookUp("a.test")).toBe(code);
  });
});

describe("localhost", () => {
  it.each(["localhost", "localhost.", "LOCALHOST", "app.localhost"])(
    "is %s, without a look-up",
    async (name) => {
      expect(await lookUp(name)).toEqual(["127.0.0.1", "::1"]);
      expect(server.questions).toEqual([]);
    },
  );

  it("is what the hosts file says, where it has an entry", async () => {
    await hosts("127.0.0.1 localhost\n");
    expect(await lookUp("localhost")).toEqual(["127.0.0.1"]);
  });
});

describe("the hosts file", () => {
  it("wins over DNS, in any case and with a trailing dot", async () => {
    await hosts(
      "# comment\n10.0.0.1\tAPP app.internal # more\nfd00::1 app\n10.0.0.1 app\nnonsense x\nfe80::1%eth0 scoped\r\n",
    );
    expect(await lookUp("app")).toEqual(["10.0.0.1", "fd00::1"]);
    expect(await lookUp("App.Internal.")).toEqual(["10.0.0.1"]);
    expect(await lookUp("scoped")).toEqual(["fe80::1%eth0"]);
    expect(await lookUp("x")).toBe("ENOTFOUND");
    expect(server.questions.every((question) => question.endsWith(" x"))).toBe(true);
  });

  it("is read for each look-up", async () => {
    await hosts("10.0.0.1 app\n");
    expect(await lookUp("app")).toEqual(["10.0.0.1"]);
    await hosts("10.0.0.22 app\n");
    expect(await lookUp("app")).toEqual(["10.0.0.22"]);
    await rm(join(folder, "hosts"));
    expect(await lookUp("app")).toBe("ENOTFOUND");
  });
});

describe("the search list", () => {
  beforeEach(() => {
    server.answer = (name, type) => (name === "app.two.test" && type === "A" ? ["10.0.0.2"] : "nxdomain");
  });

  it("completes short names, in its order", async () => {
    await resolver("nameserver 10.0.0.53\nsearch one.test two.test\n");
    expect(await lookUp("app")).toEqual(["10.0.0.2"]);
    expect(asked()).toEqual(["A app.one.test", "A app.two.test"]);
  });

  it("completes names with few dots first where ndots says so, and others after they were not found", async () => {
    await resolver("search test\noptions timeout:1 ndots:5\n");
    expect(await lookUp("app.two")).toEqual(["10.0.0.2"]);
    expect(asked()).toEqual(["A app.two.test"]);
    await resolver("search test # one dot is enough\n");
    expect(await lookUp("app.two")).toEqual(["10.0.0.2"]);
    expect(asked().slice(1)).toEqual(["A app.two", "A app.two.test"]);
  });

  it("may be that of systemd for none", async () => {
    await resolver("search .\n");
    expect(await lookUp("app.two")).toBe("ENOTFOUND");
    expect(asked()).toEqual(["A app.two"]);
  });

  it("does not complete a name that ends in a dot", async () => {
    await resolver("search two.test\noptions ndots:5\n");
    expect(await lookUp("app.")).toBe("ENOTFOUND");
    expect(asked()).toEqual(["A app"]);
  });
});

/** An address of two bytes. */
const MALFORMED = (id: Buffer, question: Buffer): Buffer =>
  Buffer.concat([id, words(0x8180, 1, 1, 0, 0), question, words(0xc00c, 1, 1, 0, 0, 2, 1)]);

it.each([
  ["answers one name with what is malformed", MALFORMED, "EBADRESP"],
  ["closes a TCP connection for one name", "closed", "ECONNREFUSED"],
] as const)("a name server that %s fails no look-up of another name", async (_what, answer, code) => {
  // So many come over TCP.
  const many = Array.from({ length: 100 }, (_, index) => `192.0.2.${index}`);
  server.answer = (name, type) => (name.startsWith("broken") ? answer : type === "A" ? many : []);
  for (let round = 0; round < 10; round += 1) {
    const broken = Array.from({ length: 5 }, (_, index) => lookUp(`broken${index}.test`));
    const sound = Array.from({ length: 10 }, (_, index) => lookUp(`sound${index}.test`));
    for (const addresses of await Promise.all(sound)) expect(addresses).toHaveLength(100);
    expect(new Set(await Promise.all(broken))).toEqual(new Set([code]));
  }
});

describe("a name server that never answers", () => {
  it("times a look-up out", async () => {
    server.answer = () => "silent";
    const found = lookUp("dead.test");
    await until("the question to come", () => server.questions.length > 0);
    await clock.advance(10_000);
    expect(await found).toBe("ETIMEOUT");
  });

  it("does not delay other names, however many wait for it", async () => {
    server.answer = (name, type) => {
      if (name.endsWith("dead.test")) return "silent";
      return type === "A" ? ["192.0.2.1"] : [];
    };
    const dead: Promise<unknown>[] = [];
    while (dead.length < 1_000) {
      // Not all at once: what does not fit into the server's buffer is lost, and asked again a second later.
      for (let more = 0; more < 50; more += 1) dead.push(lookUp(`h${dead.length}.dead.test`));
      await until("all to be asked for", () => server.questions.length >= dead.length * 2);
    }
    for (let time = 0; time < 20; time += 1) expect(await lookUp(`live${time}.test`)).toEqual(["192.0.2.1"]);
    // With the system's look-ups, one of them would wait for minutes.
    await clock.advance(10_000);
    expect(new Set(await Promise.all(dead))).toEqual(new Set(["ETIMEOUT"]));
  });

  it("does not delay a stop", async () => {
    server.answer = () => "silent";
    const found = lookUp("dead.test");
    await until("the question to come", () => server.questions.length > 0);
    names.close();
    expect(await found).toBe("ECANCELLED");
  });
});
