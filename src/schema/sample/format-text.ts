import type { SeededRandom } from "./random.ts";
import { word } from "./words.ts";

type Maker = (random: SeededRandom) => string;

const padded = (value: number, digits = 2): string => String(value).padStart(digits, "0");

const date: Maker = (random) =>
  `${random.whole(2020, 2029)}-${padded(random.whole(1, 12))}-${padded(random.whole(1, 28))}`;
const time: Maker = (random) =>
  `${padded(random.whole(0, 23))}:${padded(random.whole(0, 59))}:${padded(random.whole(0, 59))}Z`;
const dateTime: Maker = (random) => `${date(random)}T${time(random)}`;
const hex = (random: SeededRandom, digits: number): string =>
  Array.from({ length: digits }, () => random.whole(0, 15).toString(16)).join("");
const uuid: Maker = (random) =>
  `${hex(random, 8)}-${hex(random, 4)}-4${hex(random, 3)}-${random.pick(["8", "9", "a", "b"])}${hex(random, 3)}-${hex(random, 12)}`;
const host: Maker = (random) => `${word(random)}.example.com`;
const uri: Maker = (random) => `https://${host(random)}/${word(random)}`;
const email: Maker = (random) => `${word(random)}.${word(random)}@example.com`;
const pointer: Maker = (random) => `/${word(random)}/${random.whole(0, 9)}`;

/** Addresses and names are of those set aside for examples (RFC 2606, 5737, 3849), so that nothing real is met by them. */
const MAKERS: Readonly<Record<string, Maker>> = {
  date,
  time,
  "date-time": dateTime,
  "iso-time": time,
  "iso-date-time": dateTime,
  duration: (random) => `P${random.whole(1, 9)}DT${random.whole(1, 23)}H`,
  uri,
  iri: uri,
  url: uri,
  "uri-reference": (random) => `/${word(random)}/${word(random)}`,
  "iri-reference": (random) => `/${word(random)}/${word(random)}`,
  "uri-template": (random) => `https://${host(random)}/{id}`,
  email,
  "idn-email": email,
  hostname: host,
  "idn-hostname": host,
  ipv4: (random) => `192.0.2.${random.whole(1, 254)}`,
  ipv6: (random) => `2001:db8::${random.whole(1, 0xffff).toString(16)}`,
  regex: (random) => `^${word(random)}$`,
  uuid,
  "json-pointer": pointer,
  "json-pointer-uri-fragment": (random) => `#${pointer(random)}`,
  "relative-json-pointer": (random) => `${random.whole(0, 3)}${pointer(random)}`,
  byte: (random) => Buffer.from(word(random)).toString("base64"),
};

/** A text of a format; `undefined` for a format that nothing is known about. */
export function formatText(format: string, random: SeededRandom): string | undefined {
  return Object.hasOwn(MAKERS, format) ? MAKERS[format]!(random) : undefined;
}
