import { createServer, type AddressInfo, type Server } from "node:net";
import { networkInterfaces } from "node:os";

/** Listeners that nothing may ever connect to, on one port of many of this machine's addresses. */
export interface Canaries {
  readonly port: number;
  /** Where they listen. */
  readonly addresses: readonly string[];
  /** Connections accepted, at any of them. */
  readonly accepted: number;
  close(): Promise<void>;
}

const LOOPBACK = ["127.0.0.1", "127.0.0.2", "127.0.0.53", "127.1.2.3", "127.255.255.254", "::1"];

/** @param port one that is free at each of these addresses, such as that of a receiver at another one; else any */
export async function startCanaries(port = 0): Promise<Canaries> {
  const servers: Server[] = [];
  const addresses: string[] = [];
  let accepted = 0;
  let taken = port;
  for (const host of [...LOOPBACK, ...ownAddresses()]) {
    const server = createServer((socket) => {
      accepted += 1;
      socket.destroy();
    });
    const isUp = await new Promise<boolean>((resolve) => {
      // A machine may be without IPv6, or without all of 127.0.0.0/8.
      server.once("error", () => resolve(false));
      server.listen({ port: taken, host }, () => resolve(true));
    });
    if (!isUp) continue;
    servers.push(server);
    addresses.push(host);
    taken = (server.address() as AddressInfo).port;
  }
  return {
    port: taken,
    addresses,
    get accepted() {
      return accepted;
    },
    async close() {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

/** Those of its interfaces that are not loopback; a link-local one cannot be named without its zone. */
function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith("fe80:"))
    .map(({ address }) => address);
}
