import { distance } from "fastest-levenshtein";
import { isIP } from "node:net";
import { MINUTES_AND_UP, parseDurationMs, parseEncryptionKey, withoutUserInfo } from "../domain/formats.ts";
import type { ConfigKey, EncryptionConfig, KeyKind } from "./schema.ts";

export type ConfigValue = string | number | boolean | readonly string[];

/** A value as the configuration holds it, or the end of the sentence "<key> …" that says what is wrong. */
export type Checked = { readonly value: ConfigValue } | { readonly problem: string };

/** Checks a value from a file, where numbers and booleans come as such. */
export function checkValue(key: ConfigKey, value: unknown): Checked {
  const kind = kindOf(key.type);
  const problem = kind.explain?.(value);
  if (problem !== undefined) return { problem };
  if (kind.accepts(key.type, value)) return { value: kind.normalize?.(value) ?? value };
  const printable = key.type.kind === "url" && typeof value === "string" ? withoutUserInfo(value) : value;
  const shown = key.secret === true ? "" : `, not ${quoteShort(printable)}`;
  return { problem: `must be ${kind.allowed(key.type)}${shown}` };
}

/** Checks a value that came as text, from a variable or a flag. */
function checkText(key: ConfigKey, text: string): Checked {
  const trimmed = text.trim();
  return checkValue(key, kindOf(key.type).fromText?.(trimmed) ?? trimmed);
}

interface Kind<T extends KeyKind = KeyKind> {
  /** What it takes, as a phrase after "must be". */
  allowed(type: T): string;
  accepts(type: T, value: unknown): value is ConfigValue;
  /** The typed value of a text in the right form; any other text stays one and fails the check. */
  fromText?(text: string): ConfigValue | undefined;
  normalize?(value: ConfigValue): ConfigValue;
  /** A problem that deserves words of its own. */
  explain?(value: unknown): string | undefined;
}

const KINDS: { readonly [K in KeyKind["kind"]]: Kind<Extract<KeyKind, { kind: K }>> } = {
  integer: {
    allowed: ({ min, max }) => `a whole number from ${min} to ${max}`,
    accepts: ({ min, max }, value): value is number =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max,
    fromText: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined),
  },
  duration: {
    allowed: ({ canBeOff }) =>
      `a whole number of minutes, hours or days such as 30m, 12h or 30d, at most 36500d${canBeOff === true ? ", or off" : ""}`,
    accepts: ({ canBeOff }, value): value is string =>
      (canBeOff === true && value === "off") || durationMs(value) !== undefined,
    normalize: (value) => (value === "off" ? 0 : (durationMs(value) ?? value)),
  },
  boolean: {
    allowed: () => "true or false",
    accepts: (_type, value): value is boolean => typeof value === "boolean",
    fromText: (text) => (/^(?:true|1)$/.test(text) ? true : /^(?:false|0)$/.test(text) ? false : undefined),
  },
  choice: {
    allowed: ({ choices }) => `one of ${choices.join(", ")}`,
    accepts: ({ choices }, value): value is string => typeof value === "string" && choices.includes(value),
  },
  host: {
    allowed: () => "an IP address or a host name, without scheme, brackets or port",
    accepts: (_type, value): value is string =>
      typeof value === "string" &&
      (isIP(value) !== 0 || /^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.?$/.test(value)),
  },
  folder: {
    allowed: () => "the path of a folder",
    accepts: (_type, value): value is string =>
      typeof value === "string" && value !== "" && !value.includes("\0"),
  },
  file: {
    allowed: () => "the path of a file",
    accepts: (_type, value): value is string =>
      typeof value === "string" && value !== "" && !value.includes("\0"),
  },
  url: {
    allowed: () => "an http: or https: address without user name, query or fragment",
    accepts: (_type, value): value is string => typeof value === "string" && isServerUrl(value),
    normalize: (value) => String(value).replace(/\/+$/, ""),
  },
  text: {
    allowed: () => "a text of 1 to 4096 printable ASCII characters without spaces",
    accepts: (_type, value): value is string =>
      typeof value === "string" && /^[\x21-\x7e]{1,4096}$/.test(value),
  },
  encryptionKey: {
    allowed: () => "a key of 32 bytes as base64 or hex, such as `openssl rand -base64 32` prints",
    accepts: (_type, value): value is string =>
      typeof value === "string" && parseEncryptionKey(value) !== undefined,
  },
  networks: {
    allowed: () => "a list of networks in CIDR form, such as 10.0.0.0/8 or fd00::/8",
    accepts: (_type, value): value is readonly string[] =>
      Array.isArray(value) && value.every((item) => typeof item === "string" && isNetwork(item)),
    fromText: (text) => text.split(/[\s,]+/).filter((part) => part !== ""),
    explain: (value) => (Array.isArray(value) ? value.map(missingPrefix).find(Boolean) : undefined),
  },
};

function kindOf(type: KeyKind): Kind {
  return KINDS[type.kind];
}

const LONGEST_MS = 36_500 * 86_400_000;

/** `undefined` for what is no duration. */
function durationMs(value: unknown): number | undefined {
  if (typeof value !== "string" || value.startsWith("0")) return undefined;
  const ms = parseDurationMs(value, MINUTES_AND_UP);
  return ms !== undefined && ms <= LONGEST_MS ? ms : undefined;
}

function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  // Such as a password with a slash: the rest of it would pass for a path, and be shown.
  const plain = `${username}${password}${search}${hash}` === "" && !text.includes("@");
  return plain && (protocol === "http:" || protocol === "https:");
}

function isNetwork(text: string): boolean {
  const [address = "", prefix, more] = text.split("/");
  const family = address.includes("%") ? 0 : isIP(address);
  const wellFormed = prefix !== undefined && more === undefined && /^\d{1,3}$/.test(prefix);
  return wellFormed && family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128);
}

/** The commonest slip in a list of networks: an address alone. */
function missingPrefix(item: unknown): string | undefined {
  const family = typeof item === "string" ? isIP(item) : 0;
  if (family === 0) return undefined;
  return `needs networks in CIDR form: for the one address ${String(item)}, write ${String(item)}/${family === 4 ? 32 : 128}`;
}

/** A value in a message: short, on one line, with control characters spelled out. */
function quoteShort(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

export type Source = "flag" | "environment" | "file";

/** A value with where it was found. */
export interface Found {
  readonly key: ConfigKey;
  readonly value: ConfigValue;
  readonly source: Source;
  /** For a person: `--port`, `EVREG_PORT`, `/etc/evreg.yaml:3:5`. */
  readonly place: string;
  /** Folder that a relative path in the value starts at. */
  readonly base: string;
}

/** A mistake: where, and a sentence that says what is wrong and what is allowed. */
export interface Problem {
  /** The key as configured, or the name that is none. */
  readonly name: string;
  readonly place: string;
  readonly message: string;
}

/** What one source holds. */
export interface SourceValues {
  readonly found: Map<string, Found>;
  readonly problems: Problem[];
}

export function noValues(): SourceValues {
  return { found: new Map(), problems: [] };
}

/** Checks one value and files it under its key, or notes what is wrong with it. */
export function addValue(
  into: SourceValues,
  key: ConfigKey,
  raw: unknown,
  at: Omit<Found, "key" | "value">,
): void {
  const checked =
    typeof raw === "string" && at.source !== "file" ? checkText(key, raw) : checkValue(key, raw);
  if ("problem" in checked) {
    into.problems.push({ name: key.path, place: at.place, message: `${key.path} ${checked.problem}` });
  } else {
    into.found.set(key.path, { key, value: checked.value, ...at });
  }
}

/**
 * The known name somebody probably meant, if one is close enough: equal but for case, equal in its last part
 * (`timeoutMs` for `delivery.timeoutMs`), a few letters off, or with a word too many (`DATA_DIR` for `DATA`).
 */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let fewest = (wanted.length < 4 ? 1 : Math.max(2, Math.floor(wanted.length / 4))) + 1;
  for (const candidate of known) {
    const lower = candidate.toLowerCase();
    const last = lower.slice(lower.lastIndexOf(".") + 1);
    const wordMore = wanted.startsWith(`${lower}_`) || wanted.endsWith(`_${lower}`);
    const slips = wordMore ? 1.5 : Math.min(distance(wanted, lower), distance(wanted, last) + 0.5);
    if (slips < fewest) [best, fewest] = [candidate, slips];
  }
  return best;
}

/** Whether a listener on this host can only be reached from this machine. Other names are not looked up: they could change. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name === "localhost") return true;
  if (isIP(name) === 4) return name.startsWith("127.");
  return isIP(name) === 6 && new URL(`http://[${name}]`).hostname === "[::1]";
}

/** The keys themselves; `undefined` when there is none to encrypt with. */
export function encryptionKeys(
  config: EncryptionConfig,
): { readonly key: Uint8Array; readonly previous?: Uint8Array } | undefined {
  const [key, previous] = [config.key, config.previousKey].map((text) =>
    text === undefined ? undefined : parseEncryptionKey(text),
  );
  if (key === undefined) return undefined;
  return previous === undefined ? { key } : { key, previous };
}
