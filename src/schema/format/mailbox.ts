import { fullFormats } from "ajv-formats/dist/formats.js";
import { isAsciiName, isIdnHostName } from "./host-name.ts";

const IPV6 = fullFormats.ipv6 as RegExp;
const IPV4 =
  /^(?:0{0,2}\d|0?\d\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:0{0,2}\d|0?\d\d|1\d\d|2[0-4]\d|25[0-5])){3}$/;

/** What the part before the @ may not have, bare and in quotes: in ASCII, and where every other character is allowed too. */
const BARE = /[^A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|^\.|\.\.|\.$|^$/;
// oxlint-disable-next-line no-control-regex
const OTHER_BARE = /[^A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.\x80-\u{10ffff}]|^\.|\.\.|\.$|^$/u;
const QUOTED = /[^ !#-[\]-~]/;
const OTHER_QUOTED = /[^ !#-[\]-~\x80-\u{10ffff}]/u;

/** A mailbox of RFC 5321. */
export function isMailbox(text: string): boolean {
  return isOf(text, BARE, QUOTED, isAsciiName);
}

/** A mailbox of RFC 6531. */
export function isIdnMailbox(text: string): boolean {
  return isOf(text, OTHER_BARE, OTHER_QUOTED, (domain) => isIdnHostName(domain.normalize("NFC")));
}

function isOf(text: string, bare: RegExp, quoted: RegExp, isDomain: (text: string) => boolean): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0));
  const isQuoted = local.length > 1 && local.startsWith('"') && local.endsWith('"');
  // A backslash may stand before any character of ASCII that is shown.
  const faulty = isQuoted ? quoted.test(local.slice(1, -1).replaceAll(/\\[ -~]/g, "")) : bare.test(local);
  if (faulty) return false;
  const domain = text.slice(at + 1);
  if (!domain.startsWith("[") || !domain.endsWith("]")) return isDomain(domain);
  const address = domain.slice(1, -1);
  return IPV4.test(address) || (/^ipv6:/i.test(address) && IPV6.test(address.slice(5)));
}
