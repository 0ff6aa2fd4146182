import type { LookupAddress } from "node:dns";
import { networkInterfaces } from "node:os";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AddressGuard, isOwnListener } from "../../src/delivery/address-guard.ts";
import { HostNames } from "../../src/delivery/dns/resolver.ts";
import { Sender } from "../../src/delivery/sender.ts";
import { createAddressRules } from "../../src/domain/addresses.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";

// Whatever gets past the guard ends here, on every address of this machine.
let canary: Receiver;

beforeAll(async () => {
  const everywhere = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ family }) => family === "IPv6"),
  );
  canary = await startReceiver({ host: everywhere ? "::" : "0.0.0.0" });
});

afterAll(async () => {
  await canary.close();
});

const system = new HostNames({ clock: systemClock, withinMs: 5_000 });

interface Setup {
  readonly allowNetworks?: readonly string[];
  readonly ownAddresses?: readonly string[];
  readonly resolve?: HostNames["resolve"];
}

async function send(url: string, setup: Setup = {}): Promise<unknown> {
  const { allowNetworks = [], ownAddresses = [], resolve = system.resolve } = setup;
  const guard = new AddressGuard({
    rules: createAddressRules(allowNetworks),
    ownAddresses: () => ownAddresses,
    resolve,
  });
  const sender = new Sender({
    allowHttp: true,
    clock: systemClock,
    timeoutMs: 5_000,
    maxPerOrigin: 8,
    guard,
  });
  try {
    return await new Promise((settle) => {
      sender.send({ url, headers: {}, body: Buffer.from("{}") }, settle);
    });
  } finally {
    sender.close();
  }
}

function answering(...rounds: readonly (readonly string[])[]): HostNames["resolve"] {
  let round = 0;
  return async () => {
    const found: LookupAddress[] = (rounds[Math.min(round, rounds.length - 1)] ?? []).map((address) => ({
      address,
      family: address.includes(":") ? 6 : 4,
    }));
    round += 1;
    return setImmediate(found);
  };
}

const REFUSED = {
  errorCode: "address_refused",
  refusal: expect.stringContaining("are not allowed: it "),
};

describe("no connection is made", () => {
  it("to a private address, even if the name has a public one too", async () => {
    const setup = { allowNetworks: ["127.0.0.2/32"], resolve: answering(["127.0.0.2", "127.0.0.1"]) };
    const before = canary.accepted;
    expect(await send(`http://rebind.test:${canary.port}/`, setup)).toEqual(REFUSED);
    expect(canary.accepted).toBe(before);
  });
});

describe("the look-up of a name serves one connection", () => {
  it("and the connection uses the address that was checked, whatever the name resolves to later", async () => {
    // A second look-up would answer an address that is not allowed.
    const setup = { allowNetworks: ["127.0.0.5/32"], resolve: answering(["127.0.0.5"], ["10.0.0.1"]) };
    expect(await send(`http://rebind.test:${canary.port}/`, setup)).toMatchObject({ statusCode: 200 });
  });

  it("and concurrent look-ups share it", async () => {
    let lookups = 0;
    const guard = new AddressGuard({
      rules: createAddressRules(["127.0.0.0/8"]),
      ownAddresses: () => [],
      resolve: () => {
        lookups += 1;
        return setImmediate([{ address: "127.0.0.1", family: 4 }]);
      },
    });
    const lookup = guard.lookupFor(80);
    const ask = (): Promise<unknown> =>
      new Promise((resolve) => lookup("a.test", { all: true }, (_error, addresses) => resolve(addresses)));
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    expect(lookups).toBe(1);
    expect(answers).toEqual(Array.from({ length: 20 }, () => [{ address: "127.0.0.1", family: 4 }]));
    await ask();
    expect(lookups).toBe(2);
  });

  it("and returns one address where one is wanted", async () => {
    const guard = new AddressGuard({
      rules: createAddressRules([]),
      ownAddresses: () => [],
      resolve: answering(["1.1.1.1"]),
    });
    const answer = await new Promise((resolve) => {
      guard.lookupFor(443)("a.test", { all: false }, (...result) => resolve(result));
    });
    expect(answer).toEqual([null, "1.1.1.1", 4]);
  });
});

function lookUp(addresses: readonly string[]): Promise<unknown[]> {
  const guard = new AddressGuard({
    rules: createAddressRules([]),
    ownAddresses: () => [],
    resolve: answering(addresses),
  });
  return new Promise((resolve) => {
    guard.lookupFor(443)("many.test", { all: true }, (...result) => resolve(result));
  });
}

describe("a name with many addresses", () => {
  const v4 = Array.from({ length: 200 }, (_, index) => `1.1.1.${index}`);
  const v6 = Array.from({ length: 50 }, (_, index) => `2606:4700::${index + 1}`);

  it("is tried at four addresses of each family", async () => {
    const [error, tried] = await lookUp([...v6, ...v4]);
    expect(error).toBeNull();
    expect(tried).toEqual([
      ...v4.slice(0, 4).map((address) => ({ address, family: 4 })),
      ...v6.slice(0, 4).map((address) => ({ address, family: 6 })),
    ]);
  });

  it("is refused when the last address is", async () => {
    const [error] = await lookUp([...v4, ...v6, "::ffff:10.0.0.1"]);
    expect(String(error)).toContain("::ffff:10.0.0.1 are not allowed: it is a private network");
  });

  it("is refused when it has more than 256", async () => {
    const [error] = await lookUp([...v4, ...v4]);
    expect(String(error)).toContain("more than 256 addresses");
  });

  it("is not found when it has none", async () => {
    const [error] = await lookUp([]);
    expect(error).toMatchObject({ code: "ENOTFOUND", syscall: "getaddrinfo" });
  });
});

describe("the service's own listeners", () => {
  const allowNetworks = ["0.0.0.0/0", "::/0"];

  it("receive no deliveries, however they are spelled", async () => {
    const before = canary.accepted;
    const own = (listener: string) => ({ allowNetworks, ownAddresses: [`${listener}:${canary.port}`] });
    for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "localhost", "[::1]"]) {
      for (const listener of ["127.0.0.1", "0.0.0.0", "[::]", "[::1]", "localhost"]) {
        expect(await send(`http://${host}:${canary.port}/`, own(listener)), `${host} ${listener}`).toEqual(
          REFUSED,
        );
      }
    }
    expect(canary.accepted).toBe(before);
  });

  it("do not block other ports of the same machine", async () => {
    const ownAddresses = [`127.0.0.1:${canary.port + 1}`];
    expect(await send(`http://127.0.0.1:${canary.port}/`, { allowNetworks, ownAddresses })).toMatchObject({
      statusCode: 200,
    });
  });

  it("are recognised on every address of the machine when they listen on a wildcard", () => {
    for (const addresses of Object.values(networkInterfaces())) {
      for (const { address } of addresses ?? []) {
        expect(isOwnListener(address.replace(/%.*$/, ""), 7480, ["0.0.0.0:7480"]), address).toBe(true);
      }
    }
    expect(isOwnListener("192.0.2.77", 7480, ["0.0.0.0:7480", "[::]:7480"])).toBe(false);
    expect(isOwnListener("127.0.0.1", 7481, ["0.0.0.0:7480"])).toBe(false);
    expect(isOwnListener("10.1.2.3", 7480, ["10.1.2.3:7480"])).toBe(true);
    expect(isOwnListener("10.1.2.4", 7480, ["10.1.2.3:7480"])).toBe(false);
    expect(isOwnListener("64:ff9b::10.1.2.3", 7480, ["10.1.2.3:7480"])).toBe(true);
    expect(isOwnListener("64:ff9b::10.1.2.4", 7480, ["10.1.2.3:7480"])).toBe(false);
  });
});
