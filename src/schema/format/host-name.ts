import { spend } from "../budget.ts";
import { fromPunycode, toPunycode } from "./punycode.ts";

/** Characters of the longest name, and of the longest label of one, as they go over the wire. */
const LONGEST_NAME = 253;
const LONGEST_LABEL = 63;
const LABEL = /[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?/;
const ONLY_LABEL = new RegExp(`^${LABEL.source}$`);
const NAME = new RegExp(`^${LABEL.source}(?:\\.${LABEL.source})*$`);
/** What a label that is not only ASCII takes, in whichever form. */
const LABEL_STEPS = 50;
const DOTS = /[.\u3002\uff0e\uff61]/;
// oxlint-disable-next-line no-control-regex
const ASCII = /^[\0-\x7f]*$/;

/** A name of RFC 1123, whatever its labels stand for. */
export function isAsciiName(text: string): boolean {
  return text.length <= LONGEST_NAME && NAME.test(text);
}

/** A name of RFC 1123, in which each label that begins with `xn--` stands for one of IDNA 2008. */
export function isHostName(text: string): boolean {
  if (!isAsciiName(text)) return false;
  return !text.includes("--") || isIdnHostName(text);
}

/** A name of IDNA 2008 (RFC 5890 to 5893), each label in either form. */
export function isIdnHostName(text: string): boolean {
  // A character takes two units at the most, and never less than one of those that go over the wire.
  if (text.length > 2 * LONGEST_NAME) return false;
  const labels = text.split(DOTS).map(readLabel);
  if (!labels.every((label) => label !== undefined)) return false;
  if (labels.reduce((sum, { wire }) => sum + wire.length + 1, -1) > LONGEST_NAME) return false;
  return (
    !labels.some(({ shown }) => RIGHT_TO_LEFT.test(shown)) || labels.every(({ shown }) => goesOneWay(shown))
  );
}

/** A label as it is shown and as it goes over the wire; `undefined` for what is none. */
function readLabel(label: string): { shown: string; wire: string } | undefined {
  // Each character beyond ASCII takes one over the wire at the least.
  if (label.length > 2 * LONGEST_LABEL) return undefined;
  if (!ASCII.test(label)) {
    spend(LABEL_STEPS);
    const wire = `xn--${toPunycode(label)}`;
    return wire.length <= LONGEST_LABEL && isUnicodeLabel(label) ? { shown: label, wire } : undefined;
  }
  if (!ONLY_LABEL.test(label)) return undefined;
  if (label.slice(2, 4) !== "--") return { shown: label, wire: label };
  spend(LABEL_STEPS);
  const wire = label.toLowerCase();
  const shown = wire.startsWith("xn--") ? fromPunycode(wire.slice(4)) : undefined;
  if (shown === undefined || ASCII.test(shown) || `xn--${toPunycode(shown)}` !== wire) return undefined;
  return isUnicodeLabel(shown) ? { shown, wire } : undefined;
}

/** The characters of RFC 5892: letters, digits and marks that stay as they are when upper case and other forms are folded. */
const CHARACTERS =
  /^[[[\p{Ll}\p{Lu}\p{Lo}\p{Lm}\p{Nd}\p{Mn}\p{Mc}]--[\p{Changes_When_NFKC_Casefolded}\p{Default_Ignorable_Code_Point}\u20d0-\u20ff\u0640\u07fa\u302e-\u302f\u3031-\u3035\u303b\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\u{1d100}-\u{1d1ff}\u{1d200}-\u{1d24f}]]\-\u00df\u03c2\u06fd\u06fe\u0f0b\u3007\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d]+$/v;
/** Letters that join the next one, of the scripts that have them. */
const JOINING =
  "[\\u0620\\u0626\\u0628\\u062a-\\u062e\\u0633-\\u063f\\u0641-\\u0647\\u0649\\u064a\\u066e\\u066f\\u0678-\\u0687\\u069a-\\u06bf\\u06c1\\u06c2\\u06cc\\u06ce\\u06d0\\u06d1\\u06fa-\\u06fc\\u06ff\\u0712-\\u0714\\u071a-\\u071d\\u071f-\\u0727\\u0729\\u072b\\u072d\\u072e\\u074e-\\u0758\\u075c-\\u076a\\u076d-\\u0770\\u0772\\u0775-\\u0777\\u077a-\\u077f\\u07ca-\\u07ea\\u0841-\\u0845\\u0848\\u084a-\\u0853\\u0855\\u0860\\u0862-\\u0865\\u0868\\u08a0-\\u08a9\\u08af\\u08b0\\u08b3-\\u08b8\\u08ba-\\u08c8\\u1820-\\u1878\\u1887-\\u18a8\\u18aa\\ua840-\\ua872]";
const JOINED =
  "[\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Nko}\\p{Script=Mandaic}\\p{Script=Mongolian}\\p{Script=Phags_Pa}]";
const VIRAMA =
  "[\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d3b\\u0d3c\\u0d4d\\u0dca\\u0e3a\\u0eba\\u0f84\\u1039\\u103a\\u1714\\u1715\\u1734\\u17d2\\u1a60\\u1b44\\u1baa\\u1bab\\u1bf2\\u1bf3\\u2d7f\\ua806\\ua82c\\ua8c4\\ua953\\ua9c0\\uaaf6\\uabed\\u{10a3f}\\u{11046}\\u{11070}\\u{1107f}\\u{110b9}\\u{11133}\\u{11134}\\u{111c0}\\u{11235}\\u{112ea}\\u{1134d}\\u{11442}\\u{114c2}\\u{115bf}\\u{1163f}\\u{116b6}\\u{1172b}\\u{11839}\\u{1193d}\\u{1193e}\\u{119e0}\\u{11a34}\\u{11a47}\\u{11a99}\\u{11c3f}\\u{11d44}\\u{11d45}\\u{11d97}]";
/** Characters where they may not be: the contexts of RFC 5892's appendix A, each turned round. */
const OUT_OF_PLACE: readonly RegExp[] = [
  /^\p{M}/u,
  /^-|-$|^..--/u,
  /(?<!l)\u00b7|\u00b7(?!l)/u,
  /\u0375(?!\p{Script=Greek})/u,
  /(?<!\p{Script=Hebrew})[\u05f3\u05f4]/u,
  /^[^\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]*\u30fb[^\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]*$/u,
  /[\u0660-\u0669].*[\u06f0-\u06f9]|[\u06f0-\u06f9].*[\u0660-\u0669]/u,
  new RegExp(`(?<!${VIRAMA})\\u200d`, "u"),
  new RegExp(`(?<!${VIRAMA}|${JOINING}\\p{Mn}*)\\u200c|(?<!${VIRAMA})\\u200c(?!\\p{Mn}*${JOINED})`, "u"),
];

function isUnicodeLabel(label: string): boolean {
  return (
    CHARACTERS.test(label) &&
    label === label.normalize("NFC") &&
    !OUT_OF_PLACE.some((pattern) => pattern.test(label))
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

function goesOneWay(label: string): boolean {
  return LEFT_LABEL.test(label) || (RIGHT_LABEL.test(label) && !MIXED_DIGITS.test(label));
}
