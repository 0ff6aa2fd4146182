import { isIP } from "node:net";

/** Whether a listener on this host can only be reached from this machine. Other names are not looked up: they could change. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name === "localhost") return true;
  if (isIP(name) === 4) return name.startsWith("127.");
  return isIP(name) === 6 && new URL(`http://[${name}]`).hostname === "[::1]";
}
