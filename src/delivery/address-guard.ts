import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { type AddressRules, reachedAddresses } from "../domain/addresses.ts";
import { EvregError } from "../domain/error.ts";
import { isLocalAddress } from "../runtime/local-addresses.ts";
import { type HostNames, lookupError } from "./host-names.ts";

/** Each address is checked, which takes the main thread a few microseconds. */
const MAX_ADDRESSES = 256;
/** One attempt must not connect to hundreds of addresses of a name. */
const MAX_TRIED_OF_FAMILY = 4;

interface AddressGuardParts {
  readonly rules: AddressRules;
  /** What this service listens on: a handler there would drive its own API. */
  readonly ownPorts: readonly number[];
  readonly resolve: HostNames["resolve"];
}

/** Says which addresses connections may lead to. */
export class AddressGuard {
  readonly #parts: AddressGuardParts;

  constructor(parts: AddressGuardParts) {
    this.#parts = parts;
  }

  /** Answers an `EvregError` when the address may not be connected to. */
  check(address: string, port: number): EvregError | undefined {
    const { rules, ownPorts } = this.#parts;
    // First the port, as that is cheap and nearly always different.
    const isOwn = ownPorts.includes(port) && reachedAddresses(address).some(isLocalAddress);
    const reason = isOwn ? "this service itself" : rules.refusal(address);
    if (reason === undefined) return undefined;
    const setting = isOwn ? "" : " An operator can open it with delivery.allowNetworks.";
    return notAllowed(address, `it is ${reason}.${setting}`);
  }

  /**
   * `net.connect` to this port looks names up by it. It returns only checked addresses, and none when one of them is
   * refused: a name with a public and a private address is a trap or a mistake, and nobody would notice one that fails only
   * sometimes.
   */
  lookupFor(port: number): LookupFunction {
    return (hostname, options, callback) => {
      const failed = (error: Error): void => callback(error, "", 0);
      const decide = (addresses: readonly LookupAddress[]): void => {
        const refused =
          addresses.length > MAX_ADDRESSES
            ? notAllowed(hostname, `it has more than ${MAX_ADDRESSES} addresses.`)
            : addresses.map(({ address }) => this.check(address, port)).find((each) => each !== undefined);
        if (refused !== undefined) return failed(refused);
        const tried = [4, 6].flatMap((family) =>
          addresses.filter((each) => each.family === family).slice(0, MAX_TRIED_OF_FAMILY),
        );
        const [first] = tried;
        if (first === undefined) return failed(lookupError(hostname, "ENOTFOUND"));
        if (options.all === true) return callback(null, tried);
        return callback(null, first.address, first.family);
      };
      this.#parts.resolve(hostname).then(decide, failed);
    };
  }
}

export function notAllowed(target: string, why: string): EvregError {
  return new EvregError("forbidden", `Deliveries to ${target} are not allowed: ${why}`);
}
