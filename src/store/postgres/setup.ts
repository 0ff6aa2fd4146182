import type { EncryptionKeys } from "../secret-cipher.ts";
import type { DatabaseSetup } from "./connection.ts";
import type { NodeIdentity } from "./nodes.ts";

// What the threads of a database are set up with.

export interface DatabaseReaderSetup extends DatabaseSetup {
  /** What secrets are encrypted with, where they are. */
  readonly key: Uint8Array | undefined;
}

export interface DatabaseWriterSetup extends DatabaseSetup {
  readonly encryption: EncryptionKeys | undefined;
  readonly node: NodeIdentity;
  /** Whether a database that holds no data yet is refused, and left as it is. */
  readonly needsData: boolean;
  /** Left out for the time of the database. */
  readonly nowMs: number | undefined;
}
