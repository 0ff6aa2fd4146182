import { parseEncryptionKey } from "../domain/encryption-key.ts";
import type { EncryptionConfig } from "./config.ts";

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
