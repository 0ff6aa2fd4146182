import { usageError } from "../usage-errors.ts";

/**
 * An address as people type it: `3000` and `3000/hooks` are ports of this machine, `localhost:3000/hooks` and whole URLs are
 * what they say.
 * @throws EvregError `usage`
 */
export function localUrl(text: string): URL {
  const isPort = /^:?\d+(?:[/?]|$)/.test(text);
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const whole = isPort ? `http://localhost:${text.replace(/^:/, "")}` : hasScheme ? text : `http://${text}`;
  // A URL reads a number as an IPv4 address: events would go to a machine that nobody meant.
  const isNumber = /^https?:\/\/(?:\d+|0x[0-9a-f]*)(?:[/:?#]|$)/i.test(whole);
  const url = URL.canParse(whole) && !isNumber ? new URL(whole) : undefined;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url !== undefined && isHttp && url.username === "" && url.password === "" && url.port !== "0")
    return url;
  throw usageError(
    `--forward-to takes an address such as http://localhost:3000/hooks, localhost:3000 or 3000; not ${JSON.stringify(text)}.`,
  );
}
