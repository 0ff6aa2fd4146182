import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { asEvregError, type ErrorDetails, EvregError, type EvregErrorCode } from "../../../domain/error.ts";
import type { CommitReport } from "../health.ts";
import type { EncryptionKeys } from "../../secret-cipher.ts";
import type { StoreChange } from "../../store.ts";
import type { Durable } from "./connection.ts";
import type { FileId } from "./file-guard.ts";
import { EngineFailure, type FailureKind } from "./sql.ts";

/** What the worker is started with. */
export interface WorkerSetup {
  /** The data file. */
  readonly path: string;
  /**
   * Whether to release the leases in the file: its lock proves that whoever held them is gone. Not when the worker
   * replaces another one, whose leases are being worked on.
   */
  readonly release: boolean;
  /** The file that must be at the path; any, when absent. */
  readonly expected?: FileId;
  readonly encryption: EncryptionKeys | undefined;
  readonly nowMs: number;
}

/** What the thread that reads is started with. */
export interface ReaderSetup {
  readonly role: "reader";
}

/** All calls of one operation in a batch. */
export interface WriteGroup {
  readonly operation: string;
  /** Lists of arguments, or the JSON of all calls that are done together. */
  readonly calls: string | readonly unknown[];
}

/** Writes that go to the store's thread in one message, and are done in one transaction. */
export interface WriteBatch {
  readonly groups: readonly WriteGroup[];
  /** How many calls they are. */
  readonly writes: number;
  /** The bytes that calls refer to. */
  readonly bytes?: ArrayBuffer | undefined;
}

/** The answers of a group in the form of its calls, or one by one where any of them failed. */
export type GroupOutcome =
  | { readonly answers: string | readonly unknown[] }
  | { readonly outcomes: readonly WireOutcome[] };

/** A batch of a single write. */
export function singleWrite(operation: string, ...args: readonly unknown[]): WriteBatch {
  return { groups: [{ operation, calls: [args] }], writes: 1 };
}

export type ToWorker =
  | ({ readonly kind: "write"; readonly id: number } & WriteBatch)
  | {
      readonly kind: "read";
      readonly id: number;
      readonly operation: string;
      readonly args: readonly unknown[];
    }
  /** To the thread that reads, once the other one has the file open as `file`. */
  | {
      readonly kind: "open";
      readonly path: string;
      readonly file: FileId;
      /** What secrets are encrypted with, where they are. */
      readonly key: Uint8Array | undefined;
    }
  | { readonly kind: "close" };

/** An error as it crosses a thread: the engine's, or the product's with its cause for the log. */
export type WireError =
  | { readonly failure: FailureKind; readonly message: string }
  | {
      readonly code: EvregErrorCode;
      readonly message: string;
      readonly details: ErrorDetails;
      readonly cause?: string;
    };

export type WireOutcome = { readonly ok: unknown } | { readonly error: WireError };

/** What the main thread has to know of an operation. */
export type OperationTraits = { readonly kind: "read" } | WriteTraits;

export interface WriteTraits {
  readonly kind: "write";
  /** About how many rows a call writes. */
  readonly rows: number;
  /**
   * `later` for writes that a power cut may undo: they give nothing an id, what was claimed is due again after any end, and
   * counts that were folded are open again.
   */
  readonly durable: Durable;
  /** Whether all calls of a batch are done together. They go over as one JSON text, cheaper than to clone as many objects. */
  readonly isJoined: boolean;
}

export interface OpenReport {
  /** What can be asked for, by name. */
  readonly operations: Readonly<Record<string, OperationTraits>>;
  readonly file: FileId;
  /** See `files/id-reservation.ts`. */
  readonly dataId: string;
  /** The largest rowid an event ever had. */
  readonly lastEvent: number;
  /** Where the file of an older form is as it was, if it was one. */
  readonly copy?: string | undefined;
  readonly released: number;
  /** The clock was set back since the file was written, and what waits was moved with it. */
  readonly setBack: { readonly backMs: number; readonly waits: number } | undefined;
  /** Commits at the log's end of which a part was missing; see `wal-check.ts`. */
  readonly dropped: number;
  /** Names of evreg's own events that people's actions already have. Those events are not published. */
  readonly taken: readonly string[];
  /** Whether lists and totals have the last events, see `isIndexWhole`. */
  readonly isIndexWhole: boolean;
  /** How many subscriptions' secrets were encrypted now; `undefined` when there was nothing to do. */
  readonly encrypted?: number | undefined;
}

export type FromWorker =
  | { readonly kind: "ready"; readonly report: OpenReport }
  /** It could not be opened; the worker ends. */
  | { readonly kind: "openFailed"; readonly error: WireError }
  /** A write batch was committed. */
  | {
      readonly kind: "committed";
      readonly id: number;
      /** Of its groups, in their order. */
      readonly outcomes: readonly GroupOutcome[];
      /** `undefined` when every write was refused, so that nothing was committed. */
      readonly commit: CommitReport | undefined;
      readonly changes: readonly StoreChange[];
      readonly bytes: ArrayBuffer | undefined;
    }
  /** A write batch as a whole did nothing, or (`fatal`) nobody knows. */
  | { readonly kind: "rolledBack"; readonly id: number; readonly error: WireError }
  | {
      readonly kind: "readDone";
      readonly id: number;
      readonly outcome: WireOutcome;
      readonly bytes?: ArrayBuffer | undefined;
    };

/** Takes the messages that wait, without a turn of the event loop. */
export function takeWaiting(port: MessagePort, take: (message: ToWorker) => void): void {
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
    take(next.message as ToWorker);
  }
}

/** The bytes of an answer go over as they are, without a copy. */
export function post(port: MessagePort, message: FromWorker): void {
  const bytes = "bytes" in message ? message.bytes : undefined;
  port.postMessage(message, bytes === undefined ? [] : [bytes]);
}

export function toWireError(error: unknown): WireError {
  if (error instanceof EngineFailure) return { failure: error.kind, message: error.message };
  const { code, message, details } = asEvregError(error);
  if (error instanceof EvregError) return { code, message, details };
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code, message, details, cause };
}

export function fromWireError(error: WireError): EngineFailure | EvregError {
  if ("failure" in error) return new EngineFailure(error.failure, error.message);
  const { code, message, details, cause } = error;
  return new EvregError(code, message, details, cause === undefined ? {} : { cause: new Error(cause) });
}

/** The largest rowids ever given, by table; 0, or no member, where there was none. */
export type Sequences = Readonly<Partial<Record<Numbered, number>>>;

export type Numbered = "event" | "delivery" | "action" | "subscription" | "replay" | "token";

/** Where bytes lie in the one buffer that goes with a message. */
export type ByteRange = readonly [offset: number, length: number];

/** Gathers byte strings into the one buffer of a message, which is transferred. */
export class ByteWriter {
  readonly #parts: Uint8Array[] = [];
  readonly #owned: ArrayBuffer[] = [];
  #length = 0;

  /** @param bytes a buffer that nobody else uses from now on, or a view of one that is only read */
  add(bytes: ArrayBuffer | Uint8Array): ByteRange {
    if (bytes instanceof ArrayBuffer) this.#owned.push(bytes);
    const part = bytes instanceof ArrayBuffer ? new Uint8Array(bytes) : bytes;
    const range: ByteRange = [this.#length, part.byteLength];
    this.#parts.push(part);
    this.#length += part.byteLength;
    return range;
  }

  get length(): number {
    return this.#length;
  }

  /** To be called once. `undefined` when there is not a byte. */
  pack(): ArrayBuffer | undefined {
    if (this.#length === 0) return undefined;
    const packed = new Uint8Array(this.#length);
    let offset = 0;
    for (const part of this.#parts) {
      packed.set(part, offset);
      offset += part.byteLength;
    }
    // Freed here: V8 seldom collects a heap of few and small objects, whatever they hold outside it.
    for (const buffer of this.#owned) buffer.transfer(0);
    return packed.buffer;
  }
}

export function bytesAt(buffer: ArrayBuffer | undefined, [offset, length]: ByteRange): Uint8Array {
  return buffer === undefined ? new Uint8Array(0) : new Uint8Array(buffer, offset, length);
}
