/**
 * A copy of all that is stored, as it was at one moment after it was asked for: what was acknowledged before is in it. It
 * is a data file by itself, with its secrets as they are kept, encrypted or not.
 */
export interface Backup {
  readonly bytes: number;
  /** Of all its bytes, in hex. */
  readonly sha256: string;
  /** Its bytes, to be read once. Fails when they are not those that were copied. */
  content(): AsyncIterable<Uint8Array>;
  /** Gives back what it holds; needed also after its content was read. Safe to call twice. */
  close(): Promise<void>;
}
