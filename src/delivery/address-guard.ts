import { lookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import type { AddressRules } from "../domain/address.ts";
import { EvregError } from "../domain/error.ts";
import { isOwnListener } from "./own-listeners.ts";

/** Finds every address of a host name, or fails as `dns.lookup` does. */
export type Resolve = (
  hostname: string,
  callback: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void;

/** As the system resolves names, its hosts file and search domains included. */
const systemResolve: Resolve = (hostname, callback) => {
  lookup(hostname, { all: true, order: "verbatim" }, (error, addresses) => callback(error, addresses ?? []));
};

export interface AddressGuard {
  /** An `EvregError` when the address may not be connected to. */
  check(address: string, port: number): EvregError | undefined;
  /** For `net.connect` to a port: answers only addresses that were checked, and none when one of them is refused. */
  lookupFor(port: number): LookupFunction;
}

export function createAddressGuard(parts: {
  rules: AddressRules;
  /** What this service listens on, see `isOwnListener`; asked at each check, as it is not known before the start. */
  ownAddresses: () => readonly string[];
  resolve?: Resolve;
}): AddressGuard {
  const { rules, ownAddresses } = parts;
  const resolve = shared(parts.resolve ?? systemResolve);

  function check(address: string, port: number): EvregError | undefined {
    const reason = isOwnListener(address, port, ownAddresses())
      ? "this service itself"
      : rules.refusal(address);
    if (reason === undefined) return undefined;
    return new EvregError("forbidden", `Deliveries to ${address} are not allowed: it is ${reason}.`);
  }

  return {
    check,
    lookupFor: (port) => (hostname, options, callback) => {
      resolve(hostname, (error, addresses) => {
        const [first] = addresses;
        if (error !== null) return callback(error, "", 0);
        if (first === undefined) return callback(notFound(hostname), "", 0);
        for (const { address } of addresses) {
          const refused = check(address, port);
          if (refused !== undefined) return callback(refused, "", 0);
        }
        if (options.all === true) return callback(null, [...addresses]);
        return callback(null, first.address, first.family);
      });
    },
  };
}

/**
 * Lets callers that ask for the same name at the same time share one look-up. The system's resolver has only a few
 * threads; without this, one handler whose name server is slow could take them all.
 */
function shared(resolve: Resolve): Resolve {
  const waiting = new Map<string, Parameters<Resolve>[1][]>();
  return (hostname, callback) => {
    const others = waiting.get(hostname);
    if (others !== undefined) {
      others.push(callback);
      return;
    }
    const callbacks = [callback];
    waiting.set(hostname, callbacks);
    resolve(hostname, (error, addresses) => {
      waiting.delete(hostname);
      for (const each of callbacks) each(error, addresses);
    });
  };
}

function notFound(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), {
    code: "ENOTFOUND",
    syscall: "getaddrinfo",
  });
}
