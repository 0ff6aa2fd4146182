import { BytesOut } from "./bytes-out.ts";
import { type Connection, type Durable, inSavepoint } from "./connection.ts";
import { EngineFailure } from "./engine-failure.ts";
import { toWireError, type WireOp, type WireOutcome } from "./messages.ts";
import { DURABLE_LATER, MERGED_WRITES, type MergedName, type WriteName, WRITES } from "./operations.ts";
import type { Sql } from "./sql.ts";

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
