import ipaddr from "ipaddr.js";
import type { Socket } from "node:net";

/**
 * The owner of a connection: an IPv4 address, or the /64 network that an IPv6 one is of, as a whole one is given to each
 * customer. `undefined` for this machine itself, which may be a proxy in front of everybody.
 */
export function addressOf({ remoteAddress }: Socket): string | undefined {
  // The client has disconnected already.
  if (remoteAddress === undefined) return "";
  if (remoteAddress === "127.0.0.1" || remoteAddress === "::1") return undefined;
  const address = ipaddr.process(remoteAddress);
  if (!(address instanceof ipaddr.IPv6)) {
    const text = address.toString();
    return text === "127.0.0.1" ? undefined : text;
  }
  return address.parts.slice(0, 4).join(":");
}

/** The address of a connection, for people. */
export function clientAddress({ remoteAddress: address }: Socket): string | undefined {
  return address?.startsWith("::ffff:") === true ? address.slice("::ffff:".length) : address;
}
