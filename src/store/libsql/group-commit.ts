import {
  BATCHED_WRITES,
  type BatchedName,
  READS,
  SLICED_READS,
  WITHOUT_FSYNC,
  type WriteName,
  WRITES,
} from "./operations.ts";
import { type Connection, type Durable, inSavepoint } from "./thread/connection.ts";
import {
  type BatchedOutcomes,
  ByteWriter,
  toWireError,
  type ToWorker,
  type WireOutcome,
  type WriteBatch,
  type WriteCall,
  type WriteOutcomes,
} from "./thread/protocol.ts";
import type { Steps } from "../../runtime/yielding.ts";
import { EngineFailure, type Sql } from "./thread/sql.ts";

/** A write batch, as it came from the main thread. */
export interface Message extends WriteBatch {
  readonly id: number;
}

/** Messages that are carried out in one transaction. */
interface Transaction {
  readonly messages: readonly Message[];
  /** Those of all messages, one behind the other. Never empty: the driver binds an empty BLOB as NULL. */
  readonly bytes: Uint8Array;
}

/**
 * Past either, what waits is split over several transactions, so that a read need not wait for all of it. A row takes
 * 2.5 µs (a delivery) to 7 µs (an event), so a transaction 5 to 15 ms. One message is one transaction whatever its size,
 * but for what the writes themselves leave to another one.
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

/** Writes that are done together: all of one kind, or a single one. */
interface Group {
  /** Where its outcomes are put, from `position` on, once it was done. */
  readonly outcomes: WireOutcome[];
  readonly position: number;
  run(sql: Sql): readonly unknown[];
  /** The same one by one, for when doing them together failed. */
  split(): readonly Group[];
}

/**
 * Does all writes of the messages in one transaction and answers once it is committed, and durable unless none has to be. A
 * write that fails is undone and answered by itself; the others go on.
 * @throws EngineFailure when the transaction as a whole failed
 */
export function commitBatch(
  connection: Connection,
  { messages, bytes }: Transaction,
): { outcomes: readonly WriteOutcomes[]; bytes: ArrayBuffer | undefined } {
  const out = new ByteWriter();
  const kinds = kindGroups(messages, bytes);
  const calls = messages.map((message) => message.calls.map((call) => callGroup(call, out)));
  const groups = [...kinds.values(), ...calls.flat()];
  const withoutFsync =
    kinds.size === 0 &&
    messages.every((message) => message.calls.every(({ name }) => WITHOUT_FSYNC.has(name)));
  const durable = withoutFsync ? "later" : "now";
  const [only] = groups;
  const rest = only !== undefined && groups.length === 1 ? commitAlone(connection, only, durable) : groups;
  if (rest.length > 0) {
    connection.write((sql) => {
      for (const group of rest) runGroup(sql, group);
    }, durable);
  }
  const outcomes = messages.map((message, index): WriteOutcomes => ({
    calls: calls[index]!.map(({ outcomes: [outcome] }) => outcome!),
    batched: message.batched.map(({ name }) => outcomesFor(message, kinds.get(name)!)),
  }));
  return { outcomes, bytes: out.pack() };
}

/**
 * A group that has the transaction to itself needs no savepoint, for which the engine would copy every page it changes.
 * Answers what is left to be done in another one.
 */
function commitAlone(connection: Connection, group: Group, durable: Durable): readonly Group[] {
  try {
    succeeded(
      group,
      connection.write((sql) => group.run(sql), durable),
    );
    return [];
  } catch (error) {
    return failed(group, error);
  }
}

function runGroup(sql: Sql, group: Group): void {
  try {
    succeeded(
      group,
      inSavepoint(sql, () => group.run(sql)),
    );
  } catch (error) {
    for (const one of failed(group, error)) runGroup(sql, one);
  }
}

function succeeded({ outcomes, position }: Group, results: readonly unknown[]): void {
  for (const [index, ok] of results.entries()) outcomes[position + index] = { ok };
}

/** What came of a group that was undone. Answers what is to be tried instead: its writes one by one. */
function failed(group: Group, error: unknown): readonly Group[] {
  if (error instanceof EngineFailure) throw error;
  const parts = group.split();
  if (parts.length === 0) group.outcomes[group.position] = { error: toWireError(error) };
  return parts;
}

function callGroup({ name, args }: WriteCall, out: ByteWriter): Group {
  const write = WRITES[name as WriteName] as (sql: Sql, ...args: unknown[]) => unknown;
  return { outcomes: [], position: 0, run: (sql) => [write(sql, ...args, out)], split: () => [] };
}

/** As `BATCHED_WRITES` has it, whatever the kind. */
interface Kind {
  unpack(columns: unknown, start: number): readonly unknown[];
  run(sql: Sql, writes: readonly unknown[], bytes: Uint8Array): readonly unknown[];
  pack(results: readonly unknown[]): unknown;
}

interface KindGroup extends Group {
  readonly kind: Kind;
  readonly writes: unknown[];
  /** By message: where its writes start and end. */
  readonly ranges: Map<Message, readonly [start: number, end: number]>;
}

/**
 * The writes of each kind from all messages. Those of a transaction were under way together, so any order among them is a
 * true one.
 */
function kindGroups(messages: readonly Message[], bytes: Uint8Array): ReadonlyMap<string, KindGroup> {
  const groups = new Map<string, KindGroup>();
  let offsetOfMessage = 0;
  for (const message of messages) {
    for (const { name, columns, offset } of message.batched) {
      const group = groups.get(name) ?? kindGroup(name as BatchedName, bytes);
      groups.set(name, group);
      const first = group.writes.length;
      group.writes.push(...group.kind.unpack(columns, offsetOfMessage + offset));
      group.ranges.set(message, [first, group.writes.length]);
    }
    offsetOfMessage += message.bytes?.byteLength ?? 0;
  }
  return groups;
}

function kindGroup(name: BatchedName, bytes: Uint8Array): KindGroup {
  const kind = BATCHED_WRITES[name] as Kind;
  const outcomes: WireOutcome[] = [];
  const writes: unknown[] = [];
  const groupOf = (part: readonly unknown[], position: number): Group => ({
    outcomes,
    position,
    run: (sql) => kind.run(sql, part, bytes),
    split: () => (part.length > 1 ? part.map((write, index) => groupOf([write], index)) : []),
  });
  return { ...groupOf(writes, 0), kind, writes, ranges: new Map() };
}

function outcomesFor(message: Message, { kind, ranges, outcomes: all }: KindGroup): BatchedOutcomes {
  const outcomes = all.slice(...ranges.get(message)!);
  const results = outcomes.flatMap((outcome) => ("ok" in outcome ? [outcome.ok] : []));
  return results.length < outcomes.length ? { outcomes } : { packed: kind.pack(results) };
}

/** A turn ends with the step that passes this; a transaction that comes in meanwhile waits so long, and a step, at most. */
const TURN_MS = 1;

/** A read that is under way. */
export class ReadTask {
  readonly id: number;
  readonly #begin: (sql: Sql) => Steps<unknown>;
  readonly #out = new ByteWriter();
  #steps: Steps<unknown> | undefined;

  constructor({ id, name, args }: ToWorker & { readonly kind: "read" }) {
    this.id = id;
    this.#begin = (sql) => start(sql, name, args, this.#out);
  }

  /** Goes on for a turn; answers what was asked for once it is found. */
  runSlice(sql: Sql): { readonly value: unknown; readonly bytes: ArrayBuffer | undefined } | undefined {
    this.#steps ??= this.#begin(sql);
    const endMs = performance.now() + TURN_MS;
    do {
      const step = this.#steps.next();
      if (step.done === true) return { value: step.value, bytes: this.#out.pack() };
    } while (performance.now() < endMs);
    return undefined;
  }
}

function* start(sql: Sql, name: string, args: readonly unknown[], out: ByteWriter): Steps<unknown> {
  if (name in SLICED_READS) {
    const read = SLICED_READS[name as keyof typeof SLICED_READS] as (...all: unknown[]) => Steps<unknown>;
    return yield* read(sql, ...args, out);
  }
  const read = READS[name as keyof typeof READS] as (...all: unknown[]) => unknown;
  return read(sql, ...args, out);
}
