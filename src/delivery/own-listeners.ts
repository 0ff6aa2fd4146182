import { canonicalAddress, reachedAddresses } from "../domain/address.ts";
import { isOfThisMachine } from "../runtime/this-machine.ts";

/**
 * Whether connecting there would reach this service itself, which would let a handler drive its own API.
 *
 * @param address an IP address without brackets
 * @param listeners what the service listens on, as `127.0.0.1:7480` or `[::1]:7480`; a wildcard (`0.0.0.0`, `[::]`)
 *   stands for every address of this machine
 */
export function isOwnListener(address: string, port: number, listeners: readonly string[]): boolean {
  // First the port, as that is cheap and nearly always another.
  const hosts = listeners.filter((listener) => portOf(listener) === port).map(hostOf);
  return (
    hosts.length > 0 && reachedAddresses(address).some((target) => hosts.some((own) => isAt(own, target)))
  );
}

function isAt(own: string | undefined, target: string): boolean {
  if (own === undefined) return false;
  // A dual-stack or second listener is close enough to the one named: all of loopback counts as one place.
  if (own === target || (isLoopback(own) && isLoopback(target))) return true;
  return isWildcard(own) && (isLoopback(target) || isOfThisMachine(target));
}

function portOf(listener: string): number {
  return Number(listener.slice(listener.lastIndexOf(":") + 1));
}

function hostOf(listener: string): string | undefined {
  const host = listener.slice(0, listener.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  return host === "localhost" ? "127.0.0.1" : canonicalAddress(host);
}

/** The unspecified address as a destination means loopback on most systems. */
function isLoopback(canonical: string): boolean {
  return canonical.startsWith("127.") || canonical === LOOPBACK_V6 || isWildcard(canonical);
}

function isWildcard(canonical: string): boolean {
  return canonical === "0.0.0.0" || canonical === UNSPECIFIED_V6;
}

const LOOPBACK_V6 = canonicalAddress("::1");
const UNSPECIFIED_V6 = canonicalAddress("::");
