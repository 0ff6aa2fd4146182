import { asEvregError, type ErrorDetails, EvregError, type EvregErrorCode } from "../../../domain/error.ts";
import type { RecordOutcome } from "../../events.ts";
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

/** One write inside a flight. */
export type WireOp =
  | { readonly name: string; readonly args: readonly unknown[] }
  | { readonly name: "recordEvents"; readonly call: RecordCall }
  | { readonly name: "finishAttempts"; readonly call: FinishCall };

/** A call that is done together with others of its kind. */
interface MergedCall {
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

// `recordEvents` calls and their outcomes as they cross the thread: the numbers of all calls of a message in one row, as
// an object for each, cloned, would cost more than all else about a message. Everything else crosses as it is.

/** The parts of a message; `null` stands for the next call in `records`. */
interface PackedOps {
  readonly ops: readonly (WireOp | null)[];
  readonly records?: {
    /** A call after the other: nowMs, atomic (0 or 1), events, and four numbers an event as in `RecordCall.rows`. */
    readonly numbers: Float64Array;
    /** By call; absent when no event has one. */
    readonly keys?: readonly (RecordCall["keys"] | null)[];
  };
}

/** The outcomes of a message's parts; `null` stands for those of the next call in `recorded`. */
interface PackedOutcomes {
  readonly outcomes: readonly (WireOutcome | null)[];
  /** A call after the other: events, and four numbers an event: kind, rowid, timestampedMs, deliveries or revision. */
  readonly recorded?: Float64Array;
}

const CALL_NUMBERS = 3;
const EVENT_NUMBERS = 4;

const KINDS = [
  "recorded",
  "replayed",
  "key_conflict",
  "stale",
  "withheld",
  "deferred",
] as const satisfies readonly RecordOutcome["kind"][];
const KIND_NUMBERS = Object.fromEntries(KINDS.map((kind, number) => [kind, number])) as Readonly<
  Record<RecordOutcome["kind"], number>
>;

export function packOps(ops: readonly WireOp[]): PackedOps {
  let length = 0;
  let keyed = false;
  for (const op of ops) {
    if ("args" in op || op.name !== "recordEvents") continue;
    const { rows, keys } = op.call;
    length += CALL_NUMBERS + rows.length;
    keyed ||= keys !== undefined;
  }
  if (length === 0) return { ops };
  const numbers = new Float64Array(length);
  const allKeys: (RecordCall["keys"] | null)[] = [];
  let at = 0;
  const others = ops.map((op) => {
    if ("args" in op || op.name !== "recordEvents") return op;
    const { nowMs, atomic, rows, keys } = op.call;
    numbers[at] = nowMs;
    numbers[at + 1] = atomic ? 1 : 0;
    numbers[at + 2] = rows.length / EVENT_NUMBERS;
    numbers.set(rows, at + CALL_NUMBERS);
    at += CALL_NUMBERS + rows.length;
    if (keyed) allKeys.push(keys ?? null);
    return null;
  });
  return { ops: others, records: keyed ? { numbers, keys: allKeys } : { numbers } };
}

export function unpackOps({ ops, records }: PackedOps): readonly WireOp[] {
  if (records === undefined) return ops as readonly WireOp[];
  const { numbers, keys } = records;
  let at = 0;
  let calls = 0;
  return ops.map((op): WireOp => {
    if (op !== null) return op;
    const start = at + CALL_NUMBERS;
    const end = start + numbers[at + 2]! * EVENT_NUMBERS;
    const call = { nowMs: numbers[at]!, atomic: numbers[at + 1] === 1, rows: numbers.subarray(start, end) };
    const callKeys = keys?.[calls] ?? undefined;
    at = end;
    calls += 1;
    return { name: "recordEvents", call: callKeys === undefined ? call : { ...call, keys: callKeys } };
  });
}

/** @param ops what the outcomes are of, in the same order */
export function packOutcomes(ops: readonly WireOp[], outcomes: readonly WireOutcome[]): PackedOutcomes {
  const numbers: number[] = [];
  const others = outcomes.map((outcome, index) => {
    if (ops[index]?.name !== "recordEvents" || !("ok" in outcome)) return outcome;
    const events = outcome.ok as readonly RecordOutcome[];
    numbers.push(events.length);
    for (const event of events) {
      numbers.push(
        KIND_NUMBERS[event.kind],
        "rowid" in event ? event.rowid : 0,
        "timestampedMs" in event ? event.timestampedMs : 0,
        event.kind === "recorded" ? event.deliveries : event.kind === "replayed" ? event.revision : 0,
      );
    }
    return null;
  });
  return numbers.length === 0 ? { outcomes } : { outcomes: others, recorded: Float64Array.from(numbers) };
}

export function unpackOutcomes({ outcomes, recorded }: PackedOutcomes): readonly WireOutcome[] {
  if (recorded === undefined) return outcomes as readonly WireOutcome[];
  let at = 0;
  return outcomes.map((outcome) => {
    if (outcome !== null) return outcome;
    const end = at + 1 + recorded[at]! * EVENT_NUMBERS;
    const events: RecordOutcome[] = [];
    for (at += 1; at < end; at += EVENT_NUMBERS) events.push(outcomeAt(recorded, at));
    return { ok: events };
  });
}

function outcomeAt(numbers: Float64Array, at: number): RecordOutcome {
  const kind = KINDS[numbers[at]!]!;
  const rowid = numbers[at + 1]!;
  const timestampedMs = numbers[at + 2]!;
  switch (kind) {
    case "recorded":
      return { kind, rowid, timestampedMs, deliveries: numbers[at + 3]! };
    case "replayed":
      return { kind, rowid, timestampedMs, revision: numbers[at + 3]! };
    case "key_conflict":
      return { kind, rowid };
    case "stale":
    case "withheld":
    case "deferred":
      return { kind };
    default:
      return kind satisfies never;
  }
}

/** Where bytes lie in the one buffer that goes with a message: offset, length. */
export type Span = readonly [offset: number, length: number];

/** Gathers the byte strings of an answer, to be handed over in one transferred buffer. */
export class BytesOut {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** @param bytes which are nobody else's from now on */
  add(bytes: ArrayBuffer): Span {
    const part = new Uint8Array(bytes);
    const span: Span = [this.#length, part.byteLength];
    this.#parts.push(part);
    this.#length += part.byteLength;
    return span;
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

export function bytesAt(buffer: ArrayBuffer | undefined, [offset, length]: Span): Uint8Array {
  return buffer === undefined ? new Uint8Array(0) : new Uint8Array(buffer, offset, length);
}
