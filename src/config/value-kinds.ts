import { isIP } from "node:net";
import { durationText, MINUTES_AND_UP, parseDurationMs, parseEncryptionKey } from "../domain/formats.ts";
import { isTokenForm } from "../domain/token-secret.ts";

export type ConfigValue = string | number | boolean | readonly string[] | readonly number[];

/** What the values of a key are: how they are read, checked and shown. */
export interface Kind<T = ConfigValue> {
  /** What it takes, as a phrase after "must be". */
  readonly allowed: string;
  /** The value that takes effect, of one as a file has it; `undefined` for what it does not take. */
  read(value: unknown): T | undefined;
  /** What a text from a variable or a flag would be in a file; `undefined` for a text in another form. */
  fromText?(text: string): unknown;
  /** The value as a file would have it. */
  show?(value: T): ConfigValue;
  /** A refused value may hold a password, so it is not shown. */
  readonly isHidden?: true;
  /** A relative one starts at the folder of its source. */
  readonly isPath?: true;
  readonly isList?: true;
  readonly bounds?: readonly [min: number, max: number];
}

export function integer(min: number, max: number): Kind<number> {
  return {
    allowed: `a whole number from ${min} to ${max}`,
    bounds: [min, max],
    read: (value) =>
      Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined,
    fromText: (text) => (/^-?\d{1,15}$/.test(text) ? Number(text) : undefined),
  };
}

export function choice<const T extends string>(...choices: readonly T[]): Kind<T> {
  return {
    allowed: `one of ${choices.join(", ")}`,
    read: (value) => choices.find((one) => one === value),
  };
}

export const BOOLEAN: Kind<boolean> = {
  allowed: "true or false",
  read: (value) => (typeof value === "boolean" ? value : undefined),
  fromText: (text) => (/^(?:true|1)$/.test(text) ? true : /^(?:false|0)$/.test(text) ? false : undefined),
};

/** `30m`, `12h` or `30d`, read into milliseconds, or `off`, which is read into 0. */
export const DURATION_OR_OFF: Kind<number> = {
  allowed: "a whole number of minutes, hours or days such as 30m, 12h or 30d, at most 36500d, or off",
  read(value) {
    if (value === "off") return 0;
    if (typeof value !== "string" || value.startsWith("0")) return undefined;
    const ms = parseDurationMs(value, MINUTES_AND_UP);
    return ms !== undefined && ms <= LONGEST_MS ? ms : undefined;
  },
  show: (ms) => (ms === 0 ? "off" : durationText(ms)),
};
const LONGEST_MS = 36_500 * 86_400_000;

const LIST = {
  isList: true,
  fromText: (text: string) => text.split(/[\s,]+/).filter((part) => part !== ""),
} as const;

/** `0s` or `5m`, one for each retry, read into milliseconds. */
export function waits(max: number, maxMs: number): Kind<readonly number[]> {
  return {
    ...LIST,
    allowed: `a list of 1 to ${max} waits such as [0s, 5s, 1m, 10m, 1h], each at most ${durationText(maxMs)}`,
    read(value) {
      if (!Array.isArray(value) || value.length === 0 || value.length > max) return undefined;
      const all = value.map((wait) => (typeof wait === "string" ? parseDurationMs(wait) : undefined));
      return all.every((ms) => ms !== undefined && ms <= maxMs) ? (all as number[]) : undefined;
    },
    show: (all) => all.map(durationText),
  };
}

export const NETWORKS: Kind<readonly string[]> = {
  ...LIST,
  allowed:
    "a list of networks in CIDR form, such as 10.0.0.0/8 or fd00::/8, one address as 10.0.0.1/32 or ::1/128",
  read: (value) => (Array.isArray(value) && value.every(isNetwork) ? (value as string[]) : undefined),
};

function isNetwork(text: unknown): boolean {
  if (typeof text !== "string") return false;
  const [address = "", prefix, more] = text.split("/");
  const family = address.includes("%") ? 0 : isIP(address);
  const wellFormed = prefix !== undefined && more === undefined && /^\d{1,3}$/.test(prefix);
  return wellFormed && family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128);
}

export const HOST = textKind(
  "an IP address or a host name, without scheme, brackets or port",
  (text) => isIP(text) !== 0 || /^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.?$/.test(text),
);

const isPath = (text: string): boolean => text !== "" && !text.includes("\0");
/** Both are absolute once they were read. */
export const FOLDER: Kind<string> = { ...textKind("the path of a folder", isPath), isPath: true };
export const FILE: Kind<string> = { ...textKind("the path of a file", isPath), isPath: true };

/** Read without a slash at its end. */
export const SERVER_URL: Kind<string> = {
  allowed: "an http: or https: address without user name, query or fragment",
  read(value) {
    if (typeof value !== "string" || !URL.canParse(value)) return undefined;
    const { protocol, username, password, search, hash } = new URL(value);
    // Such as a password with a slash: the rest of it would pass for a path, and be shown.
    const isPlain = `${username}${password}${search}${hash}` === "" && !value.includes("@");
    return isPlain && /^https?:$/.test(protocol) ? value.replace(/\/+$/, "") : undefined;
  },
  isHidden: true,
};

export const DATABASE_URL = textKind(
  "an address such as postgres://USER:PASSWORD@HOST/DATABASE",
  (text) => URL.canParse(text) && /^postgres(?:ql)?:$/.test(new URL(text).protocol),
);

export const TEXT = textKind("a text of 1 to 4096 printable ASCII characters without spaces", (text) =>
  /^[\x21-\x7e]{1,4096}$/.test(text),
);

/** Such as evreg mints. */
export const MINTED_TOKEN = textKind(
  "a token of evreg: evreg_, 30 letters or digits, and their 6 characters of checksum",
  isTokenForm,
);

/** A text that `parseEncryptionKey` reads. */
export const ENCRYPTION_KEY = textKind(
  "a key of 32 bytes as base64 or hex, such as `openssl rand -base64 32` prints",
  (text) => parseEncryptionKey(text) !== undefined,
);

function textKind(allowed: string, accepts: (text: string) => boolean): Kind<string> {
  return {
    allowed,
    read: (value) => (typeof value === "string" && accepts(value) ? value : undefined),
  };
}

/** A value in a message: short, on one line, with control characters spelled out. */
export function quoteShort(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
