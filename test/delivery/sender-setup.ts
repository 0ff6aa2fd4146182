import type { LookupAddress } from "node:dns";
import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import { AddressGuard } from "../../src/delivery/address-guard.ts";
import type { HostNames } from "../../src/delivery/host-names.ts";
import type { SendResult } from "../../src/delivery/exchange.ts";
import { Sender } from "../../src/delivery/sender.ts";
import { createAddressRules } from "../../src/domain/addresses.ts";
import { systemClock } from "../../src/runtime/clock.ts";

interface GuardSetup {
  readonly allowNetworks?: readonly string[];
  readonly ownPorts?: readonly number[];
  readonly resolve?: HostNames["resolve"];
}

export type SenderSetup = GuardSetup & Partial<Omit<ConstructorParameters<typeof Sender>[0], "guard">>;

export function guardWith({ allowNetworks = [], ownPorts = [], resolve = names({}) }: GuardSetup) {
  const rules = createAddressRules(allowNetworks);
  return new AddressGuard({ rules, ownPorts, resolve });
}

/** A sender that may send to `http:`, and to no address that is not public unless it is told to. */
export function newSender({ allowNetworks, ownPorts, resolve, ...options }: SenderSetup): Sender {
  const guard = guardWith({
    ...(allowNetworks === undefined ? {} : { allowNetworks }),
    ...(ownPorts === undefined ? {} : { ownPorts }),
    ...(resolve === undefined ? {} : { resolve }),
  });
  return new Sender({
    clock: systemClock,
    timeoutMs: 5_000,
    allowHttp: true,
    ...options,
    guard,
  });
}

/** Sends one request; answers how it ended, with the times of its connection and the headers of the answer. */
export function postTimed(sender: Sender, url: string, body = "{}"): Promise<SendResult> {
  return new Promise((resolve) => {
    sender.send({ url, headers: { "Content-Type": "application/json" }, body: Buffer.from(body) }, resolve);
  });
}

export async function post(sender: Sender, url: string, body?: string): Promise<SendResult> {
  const { connection: _times, headers: _headers, ...outcome } = await postTimed(sender, url, body);
  return outcome;
}

/** What nothing was sent for, as its address is not allowed. */
export const REFUSED = expect.objectContaining({
  errorCode: "address_refused",
  refusal: expect.stringContaining("are not allowed: it "),
});

export function addressesOf(addresses: readonly string[]): LookupAddress[] {
  return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
}

/** Names and the addresses they resolve to; others are not found. */
export function names(table: Readonly<Record<string, readonly string[]>>): HostNames["resolve"] {
  return (hostname) => setImmediate(addressesOf(table[hostname] ?? []));
}
