import { randomBytes } from "node:crypto";

/** Where chance comes from. Tests hand in a seeded one. */
export interface Random {
  /** Cryptographically strong bytes. */
  bytes(count: number): Uint8Array;
  /** In [0, 1); for jitter, never for secrets. */
  fraction(): number;
}

export const systemRandom: Random = {
  bytes: (count) => randomBytes(count),
  fraction: () => Math.random(),
};
