export interface Health {
  readonly status: "ok" | "unavailable";
  readonly version: string;
  /** Why it is unavailable; absent while it is ok. */
  readonly reason?: string;
  readonly store: "ok" | "unavailable";
  /** `failing`: it runs, and has not been able to read what is due for some time. */
  readonly engine: "running" | "failing" | "stopped";
  /** New at each start. By it a command knows that the server it found wrote the data folder's owner file. */
  readonly instance: string;
}

/** The result of one check. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  /** A `warning` will become a problem, or may be intended. */
  readonly status: "ok" | "warning" | "problem";
  /** A sentence, without secrets. */
  readonly found: string;
  /** What to do about it; `null` when all is well. */
  readonly remedy: string | null;
}

export interface FindingsMeta {
  /** ISO 8601 UTC, by the clock of whoever checked. */
  readonly time: string;
}

export function fine(check: string, found: string): Finding {
  return { check, status: "ok", found, remedy: null };
}

export function warning(check: string, found: string, remedy: string): Finding {
  return { check, status: "warning", found, remedy };
}

export function problem(check: string, found: string, remedy: string): Finding {
  return { check, status: "problem", found, remedy };
}

/**
 * A copy of all that is stored, as it was at one moment after the request. It is a data file, with its secrets as they are
 * stored, encrypted or not.
 */
export interface Backup {
  readonly bytes: number;
  /** In hex. */
  readonly sha256: string;
  /** To be read once. Fails when the bytes are not those that were copied. */
  content(): AsyncIterable<Uint8Array>;
  /** Needed also after its content was read. Safe to call twice. */
  close(): Promise<void>;
}
