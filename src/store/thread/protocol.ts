import { asEvregError, type ErrorDetails, EvregError, type EvregErrorCode } from "../../domain/error.ts";
import type { StoreChange } from "../store.ts";
import type { Notice, OperationsTraits } from "../sql/operation.ts";
import { EngineFailure, type FailureKind } from "../sql/sql.ts";

/** What threads of the store are asked, and what they answer. */
export interface ThreadRequests {
  /** Opens the data and brings them up to date, as the engine is set up. Comes first, to the thread that writes. */
  readonly openToWrite: { readonly ask: unknown; readonly answer: OpenReport };
  /** Comes first to the thread that reads, once the other one has the data open; the other one's report has how. */
  readonly openToRead: { readonly ask: unknown; readonly answer: void };
  readonly write: { readonly ask: WriteBatch; readonly answer: Committed };
  readonly read: { readonly ask: NamedCall; readonly answer: unknown };
  readonly task: { readonly ask: NamedCall; readonly answer: unknown };
  /** Lets go of the file. The thread ends then. */
  readonly close: { readonly ask: null; readonly answer: void };
}

export type RequestKind = keyof ThreadRequests;

export type ToThread = {
  readonly [K in RequestKind]: {
    readonly id: number;
    readonly kind: K;
    readonly ask: ThreadRequests[K]["ask"];
  };
}[RequestKind];

export interface FromThread {
  readonly id: number;
  readonly outcome: WireOutcome;
  readonly damaged: readonly number[];
}

/** A read of the data file by the name of its operation, or a task on a file. */
export interface NamedCall {
  readonly operation: string;
  readonly args: readonly unknown[];
}

/** A write by the name of its operation. */
export type WriteCall = readonly [operation: string, args: readonly unknown[]];

export interface WriteBatch {
  /** The calls as JSON of `WriteCall`s, which costs half of what clones of as many objects do. */
  readonly calls: string;
  /** The bytes that calls refer to. */
  readonly bytes?: ArrayBuffer | undefined;
}

export function singleWrite(operation: string, ...args: readonly unknown[]): WriteBatch {
  return { calls: JSON.stringify([[operation, args]] satisfies WriteCall[]) };
}

export interface Committed {
  /** What comes of each call. */
  readonly outcomes: readonly WireOutcome[];
  /** What the writes did besides what they were asked to do. */
  readonly changes: readonly StoreChange[];
  /** How long making the transaction durable took. */
  readonly commitMs: number;
}

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

/** @typeParam R what the thread that reads is set up with */
export interface OpenReport<R = unknown> {
  /** The operations that can be asked for. */
  readonly operations: OperationsTraits;
  readonly reader: R;
  readonly dataId: string;
  readonly isNew: boolean;
  readonly notices: readonly Notice[];
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
