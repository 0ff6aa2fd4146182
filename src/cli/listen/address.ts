import { usageError } from "../usage-errors.ts";

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const MAX_PORT = 65_535;

/**
 * An address as people type it: `3000` and `3000/hooks` are ports of this machine, `localhost:3000/hooks` and whole URLs are
 * what they say. A name alone is refused, and a number as a host too: URLs read it as an IPv4 address, so that events would go
 * to a machine that nobody meant.
 * @throws EvregError `usage`
 */
export function localUrl(text: string): URL {
  const [, port, rest = ""] = /^:?(\d+)([/?].*)?$/.exec(text) ?? [];
  if (port !== undefined) return new URL(`http://localhost:${portOf(port, text)}${rest}`);
  const hasScheme = SCHEME.test(text);
  const whole = hasScheme ? text : `http://${text}`;
  const url = URL.canParse(whole) && !/^https?:/i.test(hasScheme ? "" : text) ? new URL(whole) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw usageError(
      `--forward-to takes an address such as http://localhost:3000/hooks, localhost:3000 or 3000; not ${JSON.stringify(text)}.`,
    );
  }
  const [, host = "", after = ""] = /^[^:]+:\/*([^/:?#]*)(.*)$/s.exec(whole) ?? [];
  if (/^(?:\d+|0x[0-9a-f]*)$/i.test(host)) {
    const path = after.replace(/^:\d*/, "");
    const meant = /^\d+$/.test(host) && Number(host) >= 1 && Number(host) <= MAX_PORT ? host : "3000";
    throw usageError(
      `--forward-to: ${host} alone is no host. For a port of this machine type ${JSON.stringify(`localhost:${meant}${path}`)}; not ${JSON.stringify(text)}.`,
    );
  }
  if (url.port === "0") portOf(url.port, text);
  if (!hasScheme && !/^[^/?#]*[.:[]/.test(text)) {
    throw usageError(
      `--forward-to: give the port of ${host} too, as in ${host}:3000, or the whole URL: ${url.href}; not ${JSON.stringify(text)}.`,
    );
  }
  return url;
}

function portOf(port: string, text: string): number {
  const value = Number(port);
  if (value >= 1 && value <= MAX_PORT) return value;
  throw usageError(
    `--forward-to: a port is a number from 1 to ${MAX_PORT.toLocaleString("en")}, as in localhost:3000; not ${JSON.stringify(text)}.`,
  );
}
