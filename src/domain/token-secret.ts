import { hash } from "node:crypto";
import { crc32 } from "node:zlib";

const PREFIX = "evreg_";
const SECRET_CHARACTERS = 30;
const CHECKSUM_CHARACTERS = 6;
export const TOKEN_LENGTH = PREFIX.length + SECRET_CHARACTERS + CHECKSUM_CHARACTERS;
const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const FORM = new RegExp(
  `^${PREFIX}([0-9A-Za-z]{${SECRET_CHARACTERS}})([0-9A-Za-z]{${CHECKSUM_CHARACTERS}})$`,
);

/** A new token: `evreg_`, 30 random base62 characters (178 bits), 6 characters of checksum. */
export function mintToken(randomBytes: (count: number) => Uint8Array): string {
  let secret = "";
  while (secret.length < SECRET_CHARACTERS) {
    for (const byte of randomBytes(SECRET_CHARACTERS)) {
      // All bytes modulo 62 would make the first eight characters likelier.
      if (byte < 248 && secret.length < SECRET_CHARACTERS) secret += BASE62[byte % 62];
    }
  }
  return PREFIX + secret + checksumOf(secret);
}

/** Whether a text has a token's form and checksum, so that typos and other services' tokens are refused without a read. */
export function isTokenForm(text: string): boolean {
  const match = FORM.exec(text);
  return match !== null && checksumOf(match[1]!) === match[2];
}

/** What is stored instead of the token: its SHA-256 in hex. A token is random, so it needs no salt and no slow hash. */
export function hashToken(token: string): string {
  return hash("sha256", token);
}

function checksumOf(secret: string): string {
  let rest = crc32(secret);
  let text = "";
  for (let count = 0; count < CHECKSUM_CHARACTERS; count++) {
    text = BASE62[rest % 62]! + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
