import { domainToASCII, domainToUnicode } from "node:url";
import { fullFormats } from "ajv-formats/dist/formats.js";
import { spend } from "../limits.ts";

/** Characters of the longest name, and of the longest label of one, as they go over the wire. */
const MAX_NAME = 253;
const MAX_LABEL = 63;
const LABEL = /[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?/;
const ONLY_LABEL = new RegExp(`^${LABEL.source}$`);
const NAME = new RegExp(`^${LABEL.source}(?:\\.${LABEL.source})*$`);
/** What a label that is not only ASCII takes, in whichever form. */
const LABEL_STEPS = 50;
const DOTS = /[.\u3002\uff0e\uff61]/;
// oxlint-disable-next-line no-control-regex
const ASCII = /^[\0-\x7f]*$/;

/** A name of RFC 1123, whatever its labels stand for. */
function isAsciiName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}

/** A name of RFC 1123, in which each label that begins with `xn--` stands for one of IDNA 2008. */
export function isHostName(text: string): boolean {
  return isAsciiName(text) && (!text.includes("--") || isIdnHostName(text));
}

/** A name of IDNA 2008 (RFC 5890 to 5893), each label in either form. */
export function isIdnHostName(text: string): boolean {
  // A character takes at most two units here, and at least one over the wire.
  if (text.length > 2 * MAX_NAME) return false;
  const labels = text.split(DOTS).map(readLabel);
  if (!labels.every((label) => label !== undefined)) return false;
  if (labels.map(({ wire }) => wire).join(".").length > MAX_NAME) return false;
  const shown = labels.map((label) => label.shown);
  return !shown.some((label) => RIGHT_TO_LEFT.test(label)) || shown.every(hasOneDirection);
}

/** A label as it is shown and as it goes over the wire; `undefined` for what is none. */
function readLabel(label: string): { shown: string; wire: string } | undefined {
  // Each character beyond ASCII takes at least one over the wire.
  if (label.length > 2 * MAX_LABEL) return undefined;
  if (!ASCII.test(label)) {
    spend(LABEL_STEPS);
    // It knows the contexts of joiners. Of characters that are no label's it might make another part of an address.
    const wire = isUnicodeLabel(label) ? domainToASCII(label) : "";
    return wire !== "" && wire.length <= MAX_LABEL ? { shown: label, wire } : undefined;
  }
  if (!ONLY_LABEL.test(label)) return undefined;
  if (label.slice(2, 4) !== "--") return { shown: label, wire: label };
  spend(LABEL_STEPS);
  const wire = label.toLowerCase();
  const shown = domainToUnicode(wire);
  if (ASCII.test(shown) || domainToASCII(shown) !== wire) return undefined;
  return isUnicodeLabel(shown) ? { shown, wire } : undefined;
}

/** The characters of RFC 5892: letters, digits and marks that case folding does not change. */
const CHARACTERS =
  /^[[[\p{Ll}\p{Lu}\p{Lo}\p{Lm}\p{Nd}\p{Mn}\p{Mc}]--[\p{Changes_When_NFKC_Casefolded}\p{Default_Ignorable_Code_Point}\u20d0-\u20ff\u0640\u07fa\u302e-\u302f\u3031-\u3035\u303b\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\u{1d100}-\u{1d1ff}\u{1d200}-\u{1d24f}]]\-\u00df\u03c2\u06fd\u06fe\u0f0b\u3007\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d]+$/v;
/** Characters where they may not be: the opposites of the contexts in RFC 5892's appendix A, but for those of joiners. */
const INVALID_CONTEXTS: readonly RegExp[] = [
  /^\p{M}/u,
  /^-|-$|^..--/u,
  /(?<!l)\u00b7|\u00b7(?!l)/u,
  /\u0375(?!\p{Script=Greek})/u,
  /(?<!\p{Script=Hebrew})[\u05f3\u05f4]/u,
  /^[^\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]*\u30fb[^\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]*$/u,
  /[\u0660-\u0669].*[\u06f0-\u06f9]|[\u06f0-\u06f9].*[\u0660-\u0669]/u,
];

function isUnicodeLabel(label: string): boolean {
  return (
    CHARACTERS.test(label) &&
    label === label.normalize("NFC") &&
    !INVALID_CONTEXTS.some((pattern) => pattern.test(label))
  );
}

// RFC 5893, with the directions that the characters of labels can have.
const RIGHT_BLOCKS =
  "\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufeff\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}";
const ARABIC_DIGITS = "\\u0660-\\u0669\\u{10d30}-\\u{10d39}\\u{10d40}-\\u{10d49}";
const RIGHT = `[[${RIGHT_BLOCKS}]--[\\p{Mn}\\u06f0-\\u06f9${ARABIC_DIGITS}]]`;
const EITHER = "0-9\\u06f0-\\u06f9";
const RIGHT_TO_LEFT = new RegExp(`[${RIGHT}${ARABIC_DIGITS}]`, "v");
const LEFT_LABEL = new RegExp(`^[\\p{L}--${RIGHT}][^${RIGHT}${ARABIC_DIGITS}]*$`, "v");
const RIGHT_LABEL = new RegExp(
  `^${RIGHT}[${RIGHT}${ARABIC_DIGITS}${EITHER}\\-\\u200c\\u200d\\p{Mn}]*(?<=[${RIGHT}${ARABIC_DIGITS}${EITHER}]\\p{Mn}*)$`,
  "v",
);
const MIXED_DIGITS = new RegExp(`[${EITHER}].*[${ARABIC_DIGITS}]|[${ARABIC_DIGITS}].*[${EITHER}]`, "v");

function hasOneDirection(label: string): boolean {
  return LEFT_LABEL.test(label) || (RIGHT_LABEL.test(label) && !MIXED_DIGITS.test(label));
}

const IPV6 = fullFormats.ipv6 as RegExp;
const IPV4 =
  /^(?:0{0,2}\d|0?\d\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?:0{0,2}\d|0?\d\d|1\d\d|2[0-4]\d|25[0-5])){3}$/;

/** What the part before the @ may not have, bare and in quotes: in ASCII, and in an internationalised address. */
const BARE = /[^A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.]|^\.|\.\.|\.$|^$/;
// oxlint-disable-next-line no-control-regex
const IDN_BARE = /[^A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.\x80-\u{10ffff}]|^\.|\.\.|\.$|^$/u;
const QUOTED = /[^ !#-[\]-~]/;
const IDN_QUOTED = /[^ !#-[\]-~\x80-\u{10ffff}]/u;

/** A mailbox of RFC 5321. */
export function isMailbox(text: string): boolean {
  return isAddressOf(text, BARE, QUOTED, isAsciiName);
}

/** A mailbox of RFC 6531. */
export function isIdnMailbox(text: string): boolean {
  return isAddressOf(text, IDN_BARE, IDN_QUOTED, (domain) => isIdnHostName(domain.normalize("NFC")));
}

function isAddressOf(text: string, bare: RegExp, quoted: RegExp, isDomain: typeof isHostName): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0));
  const isQuoted = local.length > 1 && local.startsWith('"') && local.endsWith('"');
  // A backslash may precede any printable ASCII character.
  const faulty = isQuoted ? quoted.test(local.slice(1, -1).replaceAll(/\\[ -~]/g, "")) : bare.test(local);
  if (faulty) return false;
  const domain = text.slice(at + 1);
  if (!domain.startsWith("[") || !domain.endsWith("]")) return isDomain(domain);
  const address = domain.slice(1, -1);
  return IPV4.test(address) || (/^ipv6:/i.test(address) && IPV6.test(address.slice(5)));
}

/** What RFC 3986 allows in a part of an address, besides escapes, as the inside of a character class. */
const UNRESERVED = "A-Za-z0-9\\-._~";
const SUB_DELIMS = "!$&'()*+,;=";
/** What RFC 3987 allows besides: in any part, and in a query. */
const OTHER =
  "\\u{a0}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{ffef}" +
  Array.from("123456789abcd", (plane) => `\\u{${plane}0000}-\\u{${plane}fffd}`).join("") +
  "\\u{e1000}-\\u{efffd}";
const PRIVATE = "\\u{e000}-\\u{f8ff}\\u{f0000}-\\u{ffffd}\\u{100000}-\\u{10fffd}";

/** Finds what a part may not have. A search for one character never backtracks. */
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
type AddressParts = typeof URI;

/** Splits any text, as appendix B of RFC 3986 does. */
const ADDRESS = /^(?:([^:/?#]+):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*$/;
const FUTURE_ADDRESS = new RegExp(`^[vV][0-9A-Fa-f]+\\.[${UNRESERVED}${SUB_DELIMS}:]+$`);

export const isUri = (text: string): boolean => isAddress(text, URI, true);
export const isUriReference = (text: string): boolean => isAddress(text, URI, false);
export const isIri = (text: string): boolean => isAddress(text, IRI, true);
export const isIriReference = (text: string): boolean => isAddress(text, IRI, false);

function isAddress(text: string, parts: AddressParts, isAbsolute: boolean): boolean {
  const [, scheme, authority, path = "", query = "", fragment = ""] = ADDRESS.exec(text)!;
  if (scheme === undefined ? isAbsolute || /^[^/]*:/.test(path) : !SCHEME.test(scheme)) return false;
  if (BROKEN_ESCAPE.test(text)) return false;
  if (authority !== undefined && !isAuthority(authority, parts)) return false;
  return !parts.path.test(path) && !parts.query.test(query) && !parts.fragment.test(fragment);
}

function isAuthority(authority: string, parts: AddressParts): boolean {
  const at = authority.indexOf("@");
  if (parts.userInfo.test(authority.slice(0, Math.max(at, 0)))) return false;
  const hostAndPort = authority.slice(at + 1);
  const end = hostAndPort.startsWith("[") ? hostAndPort.indexOf("]") + 1 : hostAndPort.search(/:|$/);
  if (!/^(?::\d*)?$/.test(hostAndPort.slice(end))) return false;
  const host = hostAndPort.slice(0, end);
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

/** An address on the public web, as ajv-formats defines it, but in linear time. */
export function isUrl(text: string): boolean {
  const host = WEB_ADDRESS.exec(text)?.[1];
  return host !== undefined && (WEB_NAME.test(host) || PUBLIC_IPV4.test(host));
}
