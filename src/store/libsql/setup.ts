import type { EncryptionKeys } from "../secret-cipher.ts";
import type { FileId } from "./files/file-guard.ts";

// What the threads of a data file are set up with.

export interface WriterSetup {
  /** The data file. */
  readonly path: string;
  readonly encryption: EncryptionKeys | undefined;
  readonly nowMs: number;
}

export interface ReaderSetup extends Pick<WriterSetup, "path"> {
  /** The file that the thread which writes has open. */
  readonly file: FileId;
  /** What secrets are encrypted with, where they are. */
  readonly key: Uint8Array | undefined;
}
