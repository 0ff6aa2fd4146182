import { networkInterfaces } from "node:os";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HostNames } from "../../src/delivery/host-names.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { addressesOf, guardWith, newSender, post, REFUSED, type SenderSetup } from "./sender-setup.ts";

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

async function send(url: string, setup: SenderSetup = {}): Promise<unknown> {
  const sender = newSender({ resolve: system.resolve, ...setup });
  try {
    return await post(sender, url);
  } finally {
    sender.close();
  }
}

function answering(addresses: readonly string[]): HostNames["resolve"] {
  return () => setImmediate(addressesOf(addresses));
}

function lookUp(guard: ReturnType<typeof guardWith>, all = true): Promise<unknown[]> {
  return new Promise((resolve) => {
    guard.lookupFor(443)("a.test", { all }, (...result) => resolve(result));
  });
}

it("returns one address where one is wanted", async () => {
  expect(await lookUp(guardWith({ resolve: answering(["1.1.1.1"]) }), false)).toEqual([null, "1.1.1.1", 4]);
});

describe("a name with many addresses", () => {
  const v4 = Array.from({ length: 200 }, (_, index) => `1.1.1.${index}`);
  const v6 = Array.from({ length: 50 }, (_, index) => `2606:4700::${index + 1}`);

  it("is tried at four addresses of each family", async () => {
    const tried = addressesOf([...v4.slice(0, 4), ...v6.slice(0, 4)]);
    expect(await lookUp(guardWith({ resolve: answering([...v6, ...v4]) }))).toEqual([null, tried]);
  });

  it.each([
    [
      "is refused when the last address is",
      [...v4, "::ffff:10.0.0.1"],
      "::ffff:10.0.0.1 are not allowed: it is",
    ],
    ["is refused when it has more than 256", [...v4, ...v4], "more than 256 addresses"],
    ["is not found when it has none", [], "getaddrinfo ENOTFOUND"],
  ])("%s", async (_what, addresses, message) => {
    const [error] = await lookUp(guardWith({ resolve: answering(addresses) }));
    expect(String(error)).toContain(message);
  });
});

describe("the service's own listeners", () => {
  const allowNetworks = ["0.0.0.0/0", "::/0"];

  it("receive no deliveries, however they are spelled", async () => {
    const before = canary.accepted;
    const ownPorts = [canary.port];
    for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "localhost", "[::1]"]) {
      expect(await send(`http://${host}:${canary.port}/`, { allowNetworks, ownPorts }), host).toEqual(
        REFUSED,
      );
    }
    expect(canary.accepted).toBe(before);
  });

  it("do not block other ports of the same machine", async () => {
    const sent = await send(`http://127.0.0.1:${canary.port}/`, {
      allowNetworks,
      ownPorts: [canary.port + 1],
    });
    expect(sent).toMatchObject({ statusCode: 200 });
  });

  it("are recognised on every address of this machine, and not on those of others", () => {
    const guard = guardWith({ allowNetworks, ownPorts: [7480] });
    const interfaces = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    const own = interfaces.map(({ address }) => address.replace(/%.*$/, ""));
    const v4 = interfaces.find(({ family }) => family === "IPv4");
    for (const address of [...own, "127.8.8.8", `64:ff9b::${v4!.address}`]) {
      expect(guard.check(address, 7480)?.message, address).toContain("this service itself");
      expect(guard.check(address, 7481), address).toBeUndefined();
    }
    const others = [
      "8.8.8.8",
      "2001:4860:4860::8888",
      "64:ff9b::8.8.8.8",
      "192.0.2.77",
      "64:ff9b::192.0.2.77",
    ];
    for (const address of others) {
      expect(guard.check(address, 7480)?.message ?? "", address).not.toContain("this service itself");
    }
  });
});
