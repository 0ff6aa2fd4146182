import { isIP } from "node:net";
import { resolve } from "node:path";
import {
  durationText,
  MINUTES_AND_UP,
  parseDurationMs,
  parseEncryptionKey,
  withoutUserInfo,
} from "../domain/formats.ts";
import type { ConfigKey, EncryptionConfig, KeyKind } from "./schema.ts";

export type ConfigValue = string | number | boolean | readonly string[] | readonly number[];

/** A value as the configuration holds it, or the end of the sentence "<key> …" that says what is wrong. */
type Checked = { readonly value: ConfigValue } | { readonly problem: string };

/** Checks a value from a file, where numbers and booleans come as such. */
export function checkValue(key: ConfigKey, value: unknown): Checked {
  const kind = kindOf(key.type);
  const read = kind.read(value, key.type);
  if (read !== undefined) return { value: read };
  const bareAddress =
    key.type.kind === "networks" && Array.isArray(value) && value.find((item) => isIP(item));
  if (bareAddress) {
    const network = `${bareAddress}/${isIP(bareAddress) === 4 ? 32 : 128}`;
    return { problem: `needs networks in CIDR form: for the one address ${bareAddress}, write ${network}` };
  }
  const printable = key.type.kind === "url" && typeof value === "string" ? withoutUserInfo(value) : value;
  const shown = key.secret === true ? "" : `, not ${quoteShort(printable)}`;
  return { problem: `must be ${kind.allowed(key.type)}${shown}` };
}

interface Kind<T extends KeyKind = KeyKind> {
  /** What it takes, as a phrase after "must be". */
  allowed(type: T): string;
  /** The value that takes effect; `undefined` for what it does not take. */
  read(value: unknown, type: T): ConfigValue | undefined;
  /** What a text from a variable or a flag stands for; `undefined` for a text in another form. */
  fromText?(text: string): ConfigValue | undefined;
}

const KINDS: { readonly [K in KeyKind["kind"]]: Kind<Extract<KeyKind, { kind: K }>> } = {
  integer: {
    allowed: ({ min, max }) => `a whole number from ${min} to ${max}`,
    read: (value, { min, max }) =>
      typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max
        ? value
        : undefined,
    fromText: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined),
  },
  duration: {
    allowed: ({ canBeOff }) =>
      `a whole number of minutes, hours or days such as 30m, 12h or 30d, at most 36500d${canBeOff === true ? ", or off" : ""}`,
    read: (value, { canBeOff }) => (canBeOff === true && value === "off" ? 0 : durationMs(value)),
  },
  boolean: {
    allowed: () => "true or false",
    read: (value) => (typeof value === "boolean" ? value : undefined),
    fromText: (text) => (/^(?:true|1)$/.test(text) ? true : /^(?:false|0)$/.test(text) ? false : undefined),
  },
  choice: {
    allowed: ({ choices }) => `one of ${choices.join(", ")}`,
    read: (value, { choices }) => choices.find((choice) => choice === value),
  },
  host: textKind(
    "an IP address or a host name, without scheme, brackets or port",
    (text) => isIP(text) !== 0 || /^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.?$/.test(text),
  ),
  folder: textKind("the path of a folder", isPath),
  file: textKind("the path of a file", isPath),
  url: textKind("an http: or https: address without user name, query or fragment", isServerUrl, (text) =>
    text.replace(/\/+$/, ""),
  ),
  databaseUrl: textKind(
    "an address such as postgres://USER:PASSWORD@HOST/DATABASE",
    (text) => URL.canParse(text) && /^postgres(?:ql)?:$/.test(new URL(text).protocol),
  ),
  text: textKind("a text of 1 to 4096 printable ASCII characters without spaces", (text) =>
    /^[\x21-\x7e]{1,4096}$/.test(text),
  ),
  encryptionKey: textKind(
    "a key of 32 bytes as base64 or hex, such as `openssl rand -base64 32` prints",
    (text) => parseEncryptionKey(text) !== undefined,
  ),
  networks: {
    allowed: () => "a list of networks in CIDR form, such as 10.0.0.0/8 or fd00::/8",
    read: (value) => (Array.isArray(value) && value.every(isNetwork) ? (value as string[]) : undefined),
    fromText: listed,
  },
  waits: {
    allowed: ({ max, maxMs }) =>
      `a list of 1 to ${max} waits such as [0s, 5s, 1m, 10m, 1h], each at most ${durationText(maxMs)}`,
    read: (value, { max, maxMs }) => {
      if (!Array.isArray(value) || value.length === 0 || value.length > max) return undefined;
      const waits = value.map((wait) => (typeof wait === "string" ? parseDurationMs(wait) : undefined));
      return waits.every((ms) => ms !== undefined && ms <= maxMs) ? (waits as number[]) : undefined;
    },
    fromText: listed,
  },
};

function listed(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((part) => part !== "");
}

function textKind(
  allowed: string,
  accepts: (text: string) => boolean,
  normalize = (text: string): string => text,
): Kind {
  return {
    allowed: () => allowed,
    read: (value) => (typeof value === "string" && accepts(value) ? normalize(value) : undefined),
  };
}

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

function isPath(text: string): boolean {
  return text !== "" && !text.includes("\0");
}

function isNetwork(text: unknown): boolean {
  if (typeof text !== "string") return false;
  const [address = "", prefix, more] = text.split("/");
  const family = address.includes("%") ? 0 : isIP(address);
  const wellFormed = prefix !== undefined && more === undefined && /^\d{1,3}$/.test(prefix);
  return wellFormed && family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128);
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
  /** A path is absolute. */
  readonly value: ConfigValue;
  readonly source: Source;
  /** For a person: `--port`, `EVREG_PORT`, `/etc/evreg.yaml:3:5`. */
  readonly place: string;
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

/**
 * Checks one value and files it under its key, or notes what is wrong with it.
 * @param base the folder that a relative path starts at
 */
export function addValue(
  into: SourceValues,
  key: ConfigKey,
  raw: unknown,
  { source, place, base }: Pick<Found, "source" | "place"> & { readonly base: string },
): void {
  const text = typeof raw === "string" && source !== "file" ? raw.trim() : undefined;
  const checked = checkValue(key, text === undefined ? raw : (kindOf(key.type).fromText?.(text) ?? text));
  if ("problem" in checked) {
    into.problems.push({ name: key.path, place, message: `${key.path} ${checked.problem}` });
    return;
  }
  const isPathKey = key.type.kind === "folder" || key.type.kind === "file";
  const value = isPathKey ? resolve(base, String(checked.value)) : checked.value;
  into.found.set(key.path, { key, value, source, place });
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
