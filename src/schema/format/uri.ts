import { fullFormats } from "ajv-formats/dist/formats.js";

/** What RFC 3986 allows in a part of an address, besides escapes, as the inside of a character class. */
const UNRESERVED = "A-Za-z0-9\\-._~";
const SUB_DELIMS = "!$&'()*+,;=";
/** What RFC 3987 allows besides: in any part, and in a query. */
const OTHER =
  "\\u{a0}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{ffef}" +
  Array.from({ length: 13 }, (_, at) => planes(at + 1)).join("") +
  "\\u{e1000}-\\u{efffd}";
const PRIVATE = "\\u{e000}-\\u{f8ff}\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}";

function planes(plane: number): string {
  const at = plane.toString(16);
  return `\\u{${at}0000}-\\u{${at}fffd}`;
}

/** Finds what a part may not have. To look for one character needs no going back, whatever the text. */
const forbidden = (allowed: string): RegExp => new RegExp(`[^%${allowed}]`, "u");
const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

function partsOf(other: string, inQuery: string) {
  const common = UNRESERVED + SUB_DELIMS + other;
  return {
    userInfo: forbidden(`${common}:`),
    name: forbidden(common),
    path: forbidden(`${common}:@/`),
    query: forbidden(`${common}:@/?${inQuery}`),
    fragment: forbidden(`${common}:@/?`),
  };
}
const URI = partsOf("", "");
const IRI = partsOf(OTHER, PRIVATE);
type Parts = typeof URI;

/** Takes any text apart, as appendix B of RFC 3986 does. */
const ADDRESS = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/;
const FUTURE_ADDRESS = new RegExp(`^[vV][0-9A-Fa-f]+\\.[${UNRESERVED}${SUB_DELIMS}:]+$`);
const IPV6 = fullFormats.ipv6 as RegExp;

export const isUri = (text: string): boolean => isAddress(text, URI, true);
export const isUriReference = (text: string): boolean => isAddress(text, URI, false);
export const isIri = (text: string): boolean => isAddress(text, IRI, true);
export const isIriReference = (text: string): boolean => isAddress(text, IRI, false);

function isAddress(text: string, parts: Parts, isAbsolute: boolean): boolean {
  const [, scheme, authority, path = "", query = "", fragment = ""] = ADDRESS.exec(text)!;
  if (scheme === undefined ? isAbsolute || /^[^/]*:/.test(path) : !SCHEME.test(scheme)) return false;
  if (BROKEN_ESCAPE.test(text)) return false;
  if (authority !== undefined && !isAuthority(authority, parts)) return false;
  return !parts.path.test(path) && !parts.query.test(query) && !parts.fragment.test(fragment);
}

function isAuthority(authority: string, parts: Parts): boolean {
  const at = authority.indexOf("@");
  if (parts.userInfo.test(authority.slice(0, Math.max(at, 0)))) return false;
  const place = authority.slice(at + 1);
  const end = place.startsWith("[") ? place.indexOf("]") + 1 : place.search(/:|$/);
  if (!/^(?::\d*)?$/.test(place.slice(end))) return false;
  const host = place.slice(0, end);
  if (!host.startsWith("[")) return !parts.name.test(host);
  return IPV6.test(host.slice(1, -1)) || FUTURE_ADDRESS.test(host.slice(1, -1));
}

const EXPRESSION = /\{([^{}]*)\}/g;
const NO_LITERAL = new RegExp(`[^%!#$&'()*+,\\-./0-9:;=?@A-Z[\\]_a-z~${OTHER}${PRIVATE}]`, "u");
const OPERATOR = /^[+#./;?&=,!@|]/;
const MODIFIER = /(?:\*|:[1-9]\d{0,3})$/;
const NO_NAME = /[^%A-Za-z0-9_.]|^\.|\.\.|\.$|^$/;

/** A template of RFC 6570. */
export function isUriTemplate(text: string): boolean {
  // What stands in for an expression is no part of an escape.
  const literals = text.replace(EXPRESSION, "{}").replaceAll("{}", "/");
  if (BROKEN_ESCAPE.test(text) || BROKEN_ESCAPE.test(literals) || NO_LITERAL.test(literals)) return false;
  for (const [, expression = ""] of text.matchAll(EXPRESSION)) {
    const variables = expression.replace(OPERATOR, "").split(",");
    if (variables.some((variable) => NO_NAME.test(variable.replace(MODIFIER, "")))) return false;
  }
  return true;
}

const WEB_ADDRESS = /^(?:https?|ftp):\/\/(?:[^\s/@]+@)?([^\s/@:]{1,253})(?::\d{2,5})?(?:\/\S*)?$/iu;
const WEB_NAME =
  /^(?:[a-z0-9\u{a1}-\u{ffff}]+-)*[a-z0-9\u{a1}-\u{ffff}]+(?:\.(?:[a-z0-9\u{a1}-\u{ffff}]+-)*[a-z0-9\u{a1}-\u{ffff}]+)*\.[a-z\u{a1}-\u{ffff}]{2,}$/iu;
const PUBLIC_IPV4 =
  /^(?!(?:10|127)\.|169\.254\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3])(?:\.(?:1?\d{1,2}|2[0-4]\d|25[0-5])){2}\.(?:[1-9]\d?|1\d\d|2[0-4]\d|25[0-4])$/;

/** An address on the public web, as ajv-formats has it. That one tries every end of a user's name, in the square of the length. */
export function isUrl(text: string): boolean {
  const host = WEB_ADDRESS.exec(text)?.[1];
  return host !== undefined && (WEB_NAME.test(host) || PUBLIC_IPV4.test(host));
}
