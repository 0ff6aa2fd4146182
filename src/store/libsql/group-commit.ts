import type { Steps } from "../../runtime/yielding.ts";
import {
  BATCHED_WRITES,
  type BatchedName,
  READS,
  SLICED_READS,
  WITHOUT_FSYNC,
  type WriteName,
  WRITES,
} from "./operations.ts";
import { type Connection, inSavepoint } from "./thread/connection.ts";
import {
  ByteWriter,
  type GroupOutcome,
  toWireError,
  type ToWorker,
  type WireOutcome,
  type WriteBatch,
  type WriteGroup,
} from "./thread/protocol.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";

/** A write batch, as it came from the main thread. */
export interface Message extends WriteBatch {
  readonly id: number;
}

/** Messages that are carried out in one transaction. */
interface Transaction {
  readonly messages: readonly Message[];
  /** Of all messages, one after the other. Never empty: the driver binds an empty BLOB as NULL. */
  readonly bytes: Uint8Array;
}

/**
 * Beyond either, what waits is split into several transactions, so that a read need not wait for all of it. A row takes
 * 2.5 µs (a delivery) to 7 µs (an event), so a transaction 5 to 15 ms. A message is never split.
 */
const TRANSACTION_ROWS = 2_000;
const TRANSACTION_BYTES = 8 * 1024 * 1024;

/** Takes the next transaction off the front of `waiting`: at least one message, and no more than the limits. */
export function takeBatch(waiting: Message[]): Transaction {
  let rows = 0;
  let length = 0;
  let count = 0;
  for (const message of waiting) {
    rows += message.rows;
    length += message.bytes?.byteLength ?? 0;
    if (count > 0 && (rows > TRANSACTION_ROWS || length > TRANSACTION_BYTES)) break;
    count += 1;
  }
  const messages = waiting.splice(0, count);
  const parts = messages.flatMap(({ bytes }) => (bytes === undefined ? [] : [new Uint8Array(bytes)]));
  if (parts.length === 1) return { messages, bytes: parts[0]! };
  return { messages, bytes: parts.length === 0 ? new Uint8Array(1) : Buffer.concat(parts) };
}

/** The writes of one name from all messages of a transaction. */
interface Group {
  readonly kind: Kind;
  readonly writes: unknown[];
  /** Where the writes of each part start and end. */
  readonly ranges: Map<WriteGroup, readonly [start: number, end: number]>;
  /** By write, once they are done. */
  outcomes: readonly WireOutcome[] | undefined;
}

/** How the writes of one name are done; see `BATCHED_WRITES`. */
interface Kind {
  unpack(columns: unknown, start: number): readonly unknown[];
  run(sql: Sql, writes: readonly unknown[], bytes: Uint8Array): readonly unknown[];
  pack(results: readonly unknown[]): unknown;
}

/**
 * Does all writes of the messages in one transaction. Returns once it is committed, and durable unless none has to be. A
 * write that fails is undone and answered by itself; the others go on.
 * @throws EngineFailure when the transaction as a whole failed
 */
export function commitBatch(
  connection: Connection,
  { messages, bytes }: Transaction,
): { outcomes: readonly (readonly GroupOutcome[])[]; bytes: ArrayBuffer | undefined } {
  const out = new ByteWriter();
  const byName = groupsOf(messages, out);
  // Published events and results come first, so that a claim in the same transaction sees them.
  const names = [...byName.keys()].toSorted(
    (a, b) => Number(b in BATCHED_WRITES) - Number(a in BATCHED_WRITES),
  );
  const durable = names.every((name) => WITHOUT_FSYNC.has(name)) ? "later" : "now";
  const groups = names.map((name) => byName.get(name)!);
  const [only] = groups;
  if (only !== undefined && groups.length === 1) {
    // It needs no savepoint, for which the engine would copy every page that changes.
    only.outcomes = tryAll(only.writes, (writes) =>
      connection.write((sql) => only.kind.run(sql, writes, bytes), durable),
    );
  }
  const rest = groups.filter(({ outcomes }) => outcomes === undefined);
  if (rest.length > 0) {
    connection.write((sql) => {
      for (const group of rest) group.outcomes = runGroup(sql, group, bytes);
    }, durable);
  }
  const outcomes = messages.map((message) => message.groups.map((part) => outcomeOf(part, byName)));
  return { outcomes, bytes: out.pack() };
}

/** Writes of one transaction were under way together, so any order among them is a true one. */
function groupsOf(messages: readonly Message[], out: ByteWriter): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>();
  let messageOffset = 0;
  for (const message of messages) {
    for (const part of message.groups) {
      const group = groups.get(part.name) ?? newGroup(part.name, out);
      groups.set(part.name, group);
      const start = group.writes.length;
      group.writes.push(...group.kind.unpack(part.columns, messageOffset + part.offset));
      group.ranges.set(part, [start, group.writes.length]);
    }
    messageOffset += message.bytes?.byteLength ?? 0;
  }
  return groups;
}

function newGroup(name: string, out: ByteWriter): Group {
  return { kind: kindOf(name, out), writes: [], ranges: new Map(), outcomes: undefined };
}

function kindOf(name: string, out: ByteWriter): Kind {
  if (name in BATCHED_WRITES) return BATCHED_WRITES[name as BatchedName];
  const write = WRITES[name as WriteName] as (sql: Sql, ...args: unknown[]) => unknown;
  return {
    unpack: (calls) => calls as readonly unknown[],
    run: (sql, calls) => calls.map((args) => write(sql, ...(args as readonly unknown[]), out)),
    pack: (results) => results,
  };
}

/** Together, or one by one where that fails. */
function runGroup(sql: Sql, { kind, writes }: Group, bytes: Uint8Array): readonly WireOutcome[] {
  const run = (part: readonly unknown[]): readonly unknown[] =>
    inSavepoint(sql, () => kind.run(sql, part, bytes));
  return tryAll(writes, run) ?? writes.flatMap((write) => tryAll([write], run) ?? []);
}

/** @returns `undefined` when several writes failed together, so that nothing says which of them is at fault */
function tryAll(
  writes: readonly unknown[],
  run: (writes: readonly unknown[]) => readonly unknown[],
): readonly WireOutcome[] | undefined {
  try {
    return run(writes).map((ok) => ({ ok }));
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    return writes.length === 1 ? [{ error: toWireError(error) }] : undefined;
  }
}

function outcomeOf(part: WriteGroup, groups: ReadonlyMap<string, Group>): GroupOutcome {
  const { kind, ranges, outcomes: all = [] } = groups.get(part.name)!;
  const outcomes = all.slice(...ranges.get(part)!);
  const results = outcomes.flatMap((outcome) => ("ok" in outcome ? [outcome.ok] : []));
  return results.length < outcomes.length ? { outcomes } : { packed: kind.pack(results) };
}

/** A turn ends with the step that passes this, so a transaction waits for this and a step at most. */
const TURN_MS = 1;

/** A read that is under way. */
export class ReadTask {
  readonly id: number;
  readonly #message: ToWorker & { readonly kind: "read" };
  #steps: Steps<unknown> | undefined;
  readonly #out = new ByteWriter();

  constructor(message: ToWorker & { readonly kind: "read" }) {
    this.id = message.id;
    this.#message = message;
  }

  /** Goes on for a turn. Returns the answer once it is found. */
  runSlice(sql: Sql): { readonly value: unknown; readonly bytes: ArrayBuffer | undefined } | undefined {
    const { name, args } = this.#message;
    const steps = (this.#steps ??= stepsOf(sql, name, [...args, this.#out]));
    const endMs = performance.now() + TURN_MS;
    do {
      const step = steps.next();
      if (step.done === true) return { value: step.value, bytes: this.#out.pack() };
    } while (performance.now() < endMs);
    return undefined;
  }
}

function* stepsOf(sql: Sql, name: string, args: readonly unknown[]): Steps<unknown> {
  if (name in SLICED_READS) {
    const read = SLICED_READS[name as keyof typeof SLICED_READS] as (...all: unknown[]) => Steps<unknown>;
    return yield* read(sql, ...args);
  }
  const read = READS[name as keyof typeof READS] as (...all: unknown[]) => unknown;
  return read(sql, ...args);
}
