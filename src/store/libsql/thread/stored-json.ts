import { EvregError } from "../../../domain/error.ts";

/**
 * Parses JSON that evreg has written itself.
 * @throws EvregError `internal` for what it could not have written
 */
export function parseStored(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new EvregError(
      "internal",
      "A record in the data file has JSON that evreg could not have written. `evreg doctor --deep` tells which; restore a backup from before.",
    );
  }
}

/** The value that `read` makes of stored JSON; `fallback` where evreg could not have written it. */
export function readableOr<T>(fallback: T, text: string, read: (value: unknown) => T | undefined): T {
  try {
    return read(JSON.parse(text)) ?? fallback;
  } catch {
    return fallback;
  }
}
