import {
  DURABLE_LATER,
  MERGED_WRITES,
  type MergedName,
  READS,
  READS_IN_STEPS,
  type WriteName,
  WRITES,
} from "./operations.ts";
import { type Connection, type Durable, inSavepoint } from "./thread/connection.ts";
import {
  BytesOut,
  type Cargo,
  toWireError,
  type ToWorker,
  type WireOp,
  type WireOutcome,
} from "./thread/protocol.ts";
import type { Steps } from "../../runtime/yielding.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";

/** Writes of a flight that are done together: one by itself, or all calls of one merged kind. */
interface Group {
  /** Where their outcomes go. */
  readonly places: number[];
  run(sql: Sql): readonly unknown[];
  /** The same one by one, for when doing them together failed. */
  apart(): readonly Group[];
}

/**
 * Does all writes of a flight in one transaction and answers once it is committed, and durable unless none has to be. A
 * write that fails is undone and answered by itself; the others go on.
 * @throws EngineFailure when the transaction as a whole is lost
 */
export function fly(
  connection: Connection,
  ops: readonly WireOp[],
  bytes: Uint8Array,
): { outcomes: readonly WireOutcome[]; bytes: ArrayBuffer | undefined } {
  const out = new BytesOut();
  const outcomes: WireOutcome[] = [];
  const groups = groupsOf(ops, bytes, out);
  const durable = ops.every(({ name }) => DURABLE_LATER.has(name)) ? "later" : "now";
  const [only] = groups;
  const rest =
    only !== undefined && groups.length === 1 ? flyAlone(connection, only, outcomes, durable) : groups;
  if (rest.length > 0) {
    connection.write((sql) => {
      for (const group of rest) runGroup(sql, group, outcomes);
    }, durable);
  }
  return { outcomes, bytes: out.pack() };
}

/**
 * A group that has the transaction to itself needs no savepoint, for which the engine would copy every page it changes.
 * Answers what is left to be done in another one.
 */
function flyAlone(
  connection: Connection,
  group: Group,
  outcomes: WireOutcome[],
  durable: Durable,
): readonly Group[] {
  try {
    const results = connection.write((sql) => group.run(sql), durable);
    for (const [index, place] of group.places.entries()) outcomes[place] = { ok: results[index] };
    return [];
  } catch (error) {
    return failed(group, error, outcomes);
  }
}

function runGroup(sql: Sql, group: Group, outcomes: WireOutcome[]): void {
  try {
    const results = inSavepoint(sql, () => group.run(sql));
    for (const [index, place] of group.places.entries()) outcomes[place] = { ok: results[index] };
  } catch (error) {
    for (const one of failed(group, error, outcomes)) runGroup(sql, one, outcomes);
  }
}

/** What came of a group that was undone. Answers what is to be tried instead: its writes one by one. */
function failed(group: Group, error: unknown, outcomes: WireOutcome[]): readonly Group[] {
  if (error instanceof EngineFailure) throw error;
  const [first] = group.places;
  if (group.places.length > 1) return group.apart();
  if (first !== undefined) outcomes[first] = { error: toWireError(error) };
  return [];
}

/** In the order of their first call. Calls of a flight were under way together, so any order among them is a true one. */
function groupsOf(ops: readonly WireOp[], bytes: Uint8Array, out: BytesOut): readonly Group[] {
  const groups: Group[] = [];
  const merged = new Map<MergedName, { places: number[]; calls: unknown[] }>();
  for (const [place, op] of ops.entries()) {
    if ("args" in op) {
      const run = (sql: Sql): unknown[] => [runWrite(sql, op.name, op.args, out)];
      groups.push({ places: [place], run, apart: () => [] });
      continue;
    }
    const known = merged.get(op.name);
    if (known !== undefined) {
      known.places.push(place);
      known.calls.push(op.call);
      continue;
    }
    const fresh = { places: [place], calls: [op.call] };
    merged.set(op.name, fresh);
    groups.push(mergedGroup(op.name, fresh.places, fresh.calls, bytes));
  }
  return groups;
}

function mergedGroup(name: MergedName, places: number[], calls: unknown[], bytes: Uint8Array): Group {
  return {
    places,
    run: (sql) =>
      (MERGED_WRITES[name] as (sql: Sql, calls: unknown[], bytes: Uint8Array) => readonly unknown[])(
        sql,
        calls,
        bytes,
      ),
    apart: () => places.map((place, index) => mergedGroup(name, [place], [calls[index]], bytes)),
  };
}

function runWrite(sql: Sql, name: string, args: readonly unknown[], out: BytesOut): unknown {
  const write = WRITES[name as WriteName] as (sql: Sql, ...args: unknown[]) => unknown;
  return write(sql, ...args, out);
}

/** One message of writes. */
export interface Message extends Cargo {
  readonly id: number;
}

/** Messages that are carried out in one transaction. */
interface Boarded {
  readonly ops: readonly WireOp[];
  /** Never empty: the driver binds an empty BLOB as NULL. */
  readonly bytes: Uint8Array;
  /** The messages, as they are to be answered. */
  readonly parties: readonly Message[];
}

/**
 * Past either, what waits is split over several flights, so that a read need not wait for all of it. A row takes 2.5 µs
 * (a delivery) to 7 µs (an event), so a flight 5 to 15 ms. One write is one transaction whatever its size.
 */
const FLIGHT_ROWS = 2_000;
const FLIGHT_BYTES = 8 * 1024 * 1024;

/** Takes the next flight off the front of `waiting`: at least one message, and no more than the limits. */
export function board(waiting: Message[]): Boarded {
  let rows = 0;
  let length = 0;
  let count = 0;
  for (const message of waiting) {
    rows += message.rows;
    length += message.bytes?.byteLength ?? 0;
    if (count > 0 && (rows > FLIGHT_ROWS || length > FLIGHT_BYTES)) break;
    count += 1;
  }
  const aboard = waiting.splice(0, count);
  const [first] = aboard;
  if (aboard.length === 1 && first !== undefined) {
    return { ops: first.ops, bytes: new Uint8Array(first.bytes ?? new ArrayBuffer(1)), parties: aboard };
  }
  return { ...joined(aboard), parties: aboard };
}

/** The messages' bytes in one buffer, and their calls told where theirs begin in it. */
function joined(aboard: readonly Message[]): { ops: readonly WireOp[]; bytes: Uint8Array } {
  const length = aboard.reduce((sum, { bytes }) => sum + (bytes?.byteLength ?? 0), 0);
  const all = new Uint8Array(Math.max(1, length));
  const ops: WireOp[] = [];
  let base = 0;
  for (const { ops: own, bytes } of aboard) {
    for (const op of own) ops.push("call" in op ? ({ ...op, call: { ...op.call, base } } as WireOp) : op);
    if (bytes === undefined) continue;
    all.set(new Uint8Array(bytes), base);
    base += bytes.byteLength;
  }
  return { ops, bytes: all };
}

/** A turn ends with the step that passes this; a flight that comes in meanwhile waits so long, and a step, at most. */
const TURN_MS = 1;

/** A read that is under way. */
export class Reading {
  readonly id: number;
  readonly #begin: (sql: Sql) => Steps<unknown>;
  readonly #out = new BytesOut();
  #steps: Steps<unknown> | undefined;

  constructor({ id, name, args }: ToWorker & { readonly kind: "read" }) {
    this.id = id;
    this.#begin = (sql) => begin(sql, name, args, this.#out);
  }

  /** Goes on for a turn; answers what was asked for once it is found. */
  go(sql: Sql): { readonly value: unknown; readonly bytes: ArrayBuffer | undefined } | undefined {
    this.#steps ??= this.#begin(sql);
    const endMs = performance.now() + TURN_MS;
    do {
      const step = this.#steps.next();
      if (step.done === true) return { value: step.value, bytes: this.#out.pack() };
    } while (performance.now() < endMs);
    return undefined;
  }
}

function* begin(sql: Sql, name: string, args: readonly unknown[], out: BytesOut): Steps<unknown> {
  if (name in READS_IN_STEPS) {
    const read = READS_IN_STEPS[name as keyof typeof READS_IN_STEPS] as (...all: unknown[]) => Steps<unknown>;
    return yield* read(sql, ...args, out);
  }
  const read = READS[name as keyof typeof READS] as (...all: unknown[]) => unknown;
  return read(sql, ...args, out);
}
