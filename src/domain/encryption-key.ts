const KEY_BYTES = 32;
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The key a text stands for: 32 bytes as hex, base64 or base64url; `undefined` for any other text. */
export function parseEncryptionKey(text: string): Uint8Array | undefined {
  if (HEX.test(text)) return Buffer.from(text, "hex");
  // Both alphabets are read; a text of that length is of 32 bytes, and two bits that must be nothing.
  if (!BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === KEY_BYTES ? bytes : undefined;
}
