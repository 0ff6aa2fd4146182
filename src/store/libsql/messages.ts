import { asEvregError, type ErrorDetails, EvregError, type EvregErrorCode } from "../../domain/error.ts";
import type { CommitReport } from "../commit-counts.ts";
import type { FailureKind } from "./engine-failure.ts";
import type { FileId } from "./file-place.ts";
import type { PackedOps, PackedOutcomes } from "./record-wire.ts";
import type { EncryptionKeys } from "../vault.ts";

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

/** One write inside a flight. */
export type WireOp =
  | { readonly name: string; readonly args: readonly unknown[] }
  | { readonly name: "recordEvents"; readonly call: RecordCall }
  | { readonly name: "finishAttempts"; readonly call: FinishCall };

/** A call that is done together with others of its kind. */
export interface MergedCall {
  readonly nowMs: number;
  /** Where the bytes that the call speaks of begin in the flight's; at their start unless said. */
  readonly base?: number;
}

/** Writes that are sent together. */
export interface Cargo {
  readonly ops: readonly WireOp[];
  /** They write, about. */
  readonly rows: number;
  readonly bytes?: ArrayBuffer;
}

export type ToWorker =
  | ({ readonly kind: "flight"; readonly id: number } & Omit<Cargo, "ops"> & PackedOps)
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
  /** See `data-identity.ts`. */
  readonly dataId: string;
  /** The largest rowid an event ever had. */
  readonly lastEvent: number;
  readonly migrated: readonly number[];
  readonly copy?: string;
  readonly released: number;
  /** Commits that the log's end lacked a part of; see `log-check.ts`. */
  readonly dropped: number;
  /** Names that people's actions have, so that the service's own events of these names are not told. */
  readonly taken: readonly string[];
  /** The subscriptions whose secrets were encrypted now; absent when there was nothing to do. */
  readonly encrypted?: number;
}

export type FromWorker =
  | { readonly kind: "ready"; readonly report: OpenReport }
  /** It could not be opened; the worker ends. */
  | { readonly kind: "refused"; readonly refusal: WireFailure | WireError }
  /** Committed: for each message of the flight the outcome of its writes, in order. */
  | {
      readonly kind: "landed";
      readonly flights: readonly { readonly id: number; readonly packed: PackedOutcomes }[];
      /** Absent when every write of it was refused, so that nothing was committed. */
      readonly commit?: CommitReport;
      readonly bytes?: ArrayBuffer;
    }
  /** The flight of these messages as a whole did nothing, or (`fatal`) nobody knows. */
  | { readonly kind: "aborted"; readonly ids: readonly number[]; readonly failure: WireFailure }
  | {
      readonly kind: "answer";
      readonly id: number;
      readonly outcome: WireOutcome;
      readonly bytes?: ArrayBuffer;
    }
  | { readonly kind: "unread"; readonly id: number; readonly failure: WireFailure };

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

/** One `recordEvents` call as it crosses the thread; `rows` has four numbers an event. */
export interface RecordCall extends MergedCall {
  readonly atomic: boolean;
  /** actionId, revision, and where the payload lies in the flight's bytes: offset, length. */
  readonly rows: ArrayLike<number>;
  /** By event; absent when none of them has one. */
  readonly keys?: readonly (string | null)[];
}

/** Results as they cross the thread: JSON, which is cheaper to carry than as many objects. */
export interface FinishCall extends MergedCall {
  /** `ResultRow`s. */
  readonly results: string;
  readonly disableAfterMs?: number;
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
