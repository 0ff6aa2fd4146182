import { networkInterfaces } from "node:os";

const ANY_IPV4 = "0.0.0.0";
const ANY_IPV6 = "::";

/** Every `address:port` that a listener at `host` answers at; a name stays a name. */
export function localAddresses(host: string, port: number): string[] {
  if (host !== ANY_IPV4 && host !== ANY_IPV6) return [authority(host, port)];
  const found = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  return (
    found
      // `::` takes IPv4 too.
      .filter(({ family }) => host === ANY_IPV6 || family === "IPv4")
      .map(({ address }) => authority(address, port))
  );
}

/** The URL a command on this machine uses. */
export function urlOf(host: string, port: number): string {
  return `http://${authority(host === ANY_IPV4 || host === ANY_IPV6 ? "127.0.0.1" : host, port)}`;
}

function authority(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
