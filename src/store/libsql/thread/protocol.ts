import { asEvregError, type ErrorDetails, EvregError, type EvregErrorCode } from "../../../domain/error.ts";
import type { CommitReport } from "../../health.ts";
import type { EncryptionKeys } from "../../secret-cipher.ts";
import type { FileId } from "./file-guard.ts";
import type { FailureKind } from "./sql.ts";

/** What the worker is started with. */
export interface WorkerSetup {
  /** The data file. */
  readonly path: string;
  /**
   * Leases left in the file are released when it is opened (its lock proves that whoever held them is gone); not when
   * the worker only takes the place of another one, whose leases are being worked on.
   */
  readonly release: boolean;
  /** The file that must be there; any, when absent. */
  readonly expected?: FileId;
  readonly encryption: EncryptionKeys | undefined;
  readonly nowMs: number;
}

/** One write that is done by itself, in a savepoint of its own. */
export interface WriteCall {
  readonly name: string;
  readonly args: readonly unknown[];
}

/** All writes of one kind in a batch: they are done together. */
export interface BatchedCalls {
  readonly name: string;
  /** As the codec of the kind packs them. */
  readonly columns: unknown;
  /** Where their bytes start in the batch's. */
  readonly offset: number;
}

/** Writes that go to the store's thread in one message. */
export interface WriteBatch {
  readonly calls: readonly WriteCall[];
  /** At most one for each kind. */
  readonly batched: readonly BatchedCalls[];
  /** How many writes they are. */
  readonly writes: number;
  /** About how many rows they write. */
  readonly rows: number;
  readonly bytes?: ArrayBuffer;
}

/** What came of the writes of one kind: packed by its codec, or one by one where they had to be done so. */
export type BatchedOutcomes = { readonly packed: unknown } | { readonly outcomes: readonly WireOutcome[] };

/** The outcomes of a write batch, in its order. */
export interface WriteOutcomes {
  readonly calls: readonly WireOutcome[];
  readonly batched: readonly BatchedOutcomes[];
}

/** A batch of a single write. */
export function singleCall(name: string, ...args: readonly unknown[]): WriteBatch {
  return { calls: [{ name, args }], batched: [], writes: 1, rows: 1 };
}

export type ToWorker =
  | ({ readonly kind: "write"; readonly id: number } & WriteBatch)
  | { readonly kind: "read"; readonly id: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: "close" };

export interface WireError {
  readonly code: EvregErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
  /** For the log only. */
  readonly cause?: string;
}

export interface WireFailure {
  readonly failure: FailureKind;
  readonly reason: string;
}

export type WireOutcome = { readonly ok: unknown } | { readonly error: WireError };

export interface OpenReport {
  readonly file: FileId;
  /** See `files/id-reservation.ts`. */
  readonly dataId: string;
  /** The largest rowid an event ever had. */
  readonly lastEvent: number;
  readonly migrated: readonly number[];
  readonly copy?: string;
  readonly released: number;
  /** Commits that the log's end lacked a part of; see `wal-check.ts`. */
  readonly dropped: number;
  /** Names that people's actions have, so that the service's own events of these names are not told. */
  readonly taken: readonly string[];
  /** The subscriptions whose secrets were encrypted now; absent when there was nothing to do. */
  readonly encrypted?: number;
}

export type FromWorker =
  | { readonly kind: "ready"; readonly report: OpenReport }
  /** It could not be opened; the worker ends. */
  | { readonly kind: "openFailed"; readonly failure: WireFailure | WireError }
  /** Committed: for each write batch the outcomes of its writes. */
  | {
      readonly kind: "committed";
      readonly batches: readonly { readonly id: number; readonly outcomes: WriteOutcomes }[];
      /** Absent when every write of it was refused, so that nothing was committed. */
      readonly commit?: CommitReport;
      readonly bytes?: ArrayBuffer;
    }
  /** These write batches as a whole did nothing, or (`fatal`) nobody knows. */
  | { readonly kind: "rolledBack"; readonly ids: readonly number[]; readonly failure: WireFailure }
  | {
      readonly kind: "readDone";
      readonly id: number;
      readonly outcome: WireOutcome;
      readonly bytes?: ArrayBuffer;
    }
  | { readonly kind: "readFailed"; readonly id: number; readonly failure: WireFailure };

export function toWireError(error: unknown): WireError {
  const { code, message, details } = asEvregError(error);
  if (error instanceof EvregError) return { code, message, details };
  return {
    code,
    message,
    details,
    cause: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}

export function fromWireError({ code, message, details, cause }: WireError): EvregError {
  return new EvregError(code, message, details, cause === undefined ? {} : { cause: new Error(cause) });
}

/** What is to be looked through. */
export interface FileCheck {
  readonly check: string;
  /** What messages call it. */
  readonly name: string;
  /** Whether the secrets in it must open with `encryption`. */
  readonly opensSecrets: boolean;
  readonly encryption: EncryptionKeys | undefined;
  /** Of a token, as it would be in there. */
  readonly tokenHash?: string;
}

/** A file that is to be moved, so that no log beside it holds a part of it. */
export interface FileSettling {
  readonly settle: string;
}

/** A restored file, not in its place yet, whose numbers are to be moved on. It gets an identity of its own with that. */
export interface NumberMove {
  readonly moveOn: string;
  /** What messages call it, if not by its path. */
  readonly name?: string;
  readonly nowMs: number;
  /** Of the data that it takes the place of; it gives out none of these numbers either. */
  readonly replaced: Sequences;
}

/** The largest rowids ever given, by table; 0, or no member, where there was none. */
export type Sequences = Readonly<Partial<Record<Numbered, number>>>;

export type Numbered = "event" | "delivery" | "action" | "subscription" | "replay" | "token";

/** Where bytes lie in the one buffer that goes with a message. */
export type ByteRange = readonly [offset: number, length: number];

/** Gathers the byte strings of an answer, to be handed over in one transferred buffer. */
export class ByteWriter {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** @param bytes which are nobody else's from now on */
  add(bytes: ArrayBuffer): ByteRange {
    const part = new Uint8Array(bytes);
    const range: ByteRange = [this.#length, part.byteLength];
    this.#parts.push(part);
    this.#length += part.byteLength;
    return range;
  }

  /** How many there are by now. */
  get length(): number {
    return this.#length;
  }

  /** All of them one behind the other, to be asked for once; `undefined` when there is not a byte. */
  pack(): ArrayBuffer | undefined {
    if (this.#length === 0) return undefined;
    const packed = new Uint8Array(this.#length);
    let offset = 0;
    for (const part of this.#parts) {
      packed.set(part, offset);
      offset += part.byteLength;
      // Not left to V8, which seldom collects a heap of few and small objects, whatever they hold outside it.
      if (part.buffer instanceof ArrayBuffer) part.buffer.transfer(0);
    }
    return packed.buffer;
  }
}

export function bytesAt(buffer: ArrayBuffer | undefined, [offset, length]: ByteRange): Uint8Array {
  return buffer === undefined ? new Uint8Array(0) : new Uint8Array(buffer, offset, length);
}
