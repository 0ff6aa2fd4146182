import { asEvregError } from "../../domain/error.ts";
import type { EventRecord, EventStore, RecordOutcome } from "../events.ts";
import type { DamagedEvents } from "./health.ts";
import type {
  AttemptResult,
  ClaimAnswer,
  DeliveryQueue,
  FinishOptions,
  FinishOutcome,
  RecordClaim,
} from "../queue.ts";
import type { FileAdmin, Store } from "../store.ts";
import type { Backups } from "./files/backup.ts";
import type { OPERATIONS } from "./operations.ts";
import {
  claimAnswer,
  ClaimedSubscriptions,
  type ClaimReply,
  incoming,
  recordedClaims,
  type WireRecordOutcome,
} from "./queue/wire.ts";
import type { Part } from "./thread/operation.ts";
import { checkText } from "./thread/sql.ts";
import type { WorkerSupervisor } from "./thread/supervisor.ts";
import type { ThreadCalls } from "./thread/thread-calls.ts";
import type { WriteReply } from "./thread/write-queue.ts";

/** A store on files. */
export type FileStore = Store & { readonly files: FileAdmin };

/** What the store is made of. */
interface StoreParts {
  readonly supervisor: WorkerSupervisor;
  readonly calls: ThreadCalls<typeof OPERATIONS>;
  readonly damaged: DamagedEvents;
  readonly backups: Backups;
  /** Names the data; see `files/id-reservation.ts`. */
  readonly dataId: string;
  /** What the file's secrets are encrypted with, where they are. */
  readonly key: Uint8Array | undefined;
  /** Ends what is under way, and releases the file. It is called once. */
  readonly close: () => Promise<void>;
}

/**
 * The store as the rest of the product has it. Nearly every method is an operation of the store's thread (`operations.ts`) as it
 * is; here are those that have bytes, or take more than one call.
 */
export function createLibsqlStore(parts: StoreParts): FileStore {
  const { calls, damaged, backups, supervisor, dataId } = parts;
  const { catalog, replays, tokens, audit, stats } = calls;
  const claimed = new ClaimedSubscriptions(parts.key);
  let closing: Promise<void> | undefined;
  return {
    dataId,
    catalog,
    events: eventStore(parts, claimed),
    queue: deliveryQueue(parts, claimed),
    replays: {
      ...replays,
      async count(plan, signal) {
        const counts = await readParts(replays.count, plan, signal);
        return counts.reduce((sum, count) => sum + count, 0);
      },
    },
    tokens,
    audit,
    stats: { ...stats, figures: (query) => readParts(stats.figures, query) },
    files: {
      backup: (signal) => backups.make(signal),
      damagedEvents: () => damaged.events,
    },
    health: () => supervisor.condition(),
    close: () => (closing ??= parts.close()),
  };
}

function eventStore({ supervisor, calls }: StoreParts, claimed: ClaimedSubscriptions): EventStore {
  const { events } = calls;

  /** Records events, in several transactions where all of it would be too much for one. */
  async function record(
    batch: readonly EventRecord[],
    nowMs: number,
    atomic: boolean,
    claim: RecordClaim | undefined,
  ): Promise<readonly RecordOutcome[]> {
    for (const { idempotencyKey } of batch) {
      if (idempotencyKey !== undefined) checkText("idempotency_key", idempotencyKey);
    }
    const outcomes: RecordOutcome[] = [];
    let portion = batch.length;
    while (outcomes.length < batch.length) {
      const own = batch.slice(outcomes.length, outcomes.length + portion);
      // A claim is for the first event that is recorded.
      const isFirst = outcomes.every(({ kind }) => kind !== "recorded");
      let taken: readonly WireRecordOutcome[];
      try {
        ({ value: taken } = await events.record(own.length, (bytes) => ({
          events: own.map((event) => incoming(event, nowMs, bytes)),
          atomic,
          claim: isFirst ? claim : undefined,
        })));
      } catch (error) {
        if (outcomes.length === 0) throw error;
        const failed = { kind: "failed", error: asEvregError(error) } as const;
        return batch.map((_, index) => outcomes[index] ?? failed);
      }
      // The rest is sent in portions of about what was not too much.
      if (taken.length < own.length) portion = 2 * taken.length;
      for (const outcome of taken) {
        if (outcome.kind === "recorded") supervisor.noteRecorded(outcome.rowid);
        outcomes.push(withClaims(outcome, batch[outcomes.length]!, claim));
      }
    }
    return outcomes;
  }

  function withClaims(
    outcome: WireRecordOutcome,
    { payload }: EventRecord,
    claim: RecordClaim | undefined,
  ): RecordOutcome {
    if (outcome.kind !== "recorded" || outcome.leases === undefined || claim === undefined) return outcome;
    const { leases, ...recorded } = outcome;
    const { rowid: eventId, timestampedMs } = recorded;
    const event = { eventId, action: claim.action, payload, timestampedMs };
    return { ...recorded, claims: recordedClaims(leases, event, claimed) };
  }

  return {
    ...events,
    record: (batch, nowMs, { atomic = false, claim } = {}) => record(batch, nowMs, atomic, claim),
  };
}

function deliveryQueue({ calls }: StoreParts, claimed: ClaimedSubscriptions): DeliveryQueue {
  const { queue } = calls;

  async function finish(
    result: AttemptResult,
    nowMs: number,
    options: FinishOptions,
  ): Promise<FinishOutcome> {
    const { value, payloads } = await queue.finish(1, () => ({ ...result, nowMs, options }));
    if (value.kind !== "stored" || value.claimed === undefined) return value;
    const { claimed: reply, ...outcome } = value;
    const [next] = claimAnswer(reply, payloads, claimed).claims;
    return next === undefined ? outcome : { ...outcome, next };
  }

  async function answer(asked: Promise<WriteReply<ClaimReply>>): Promise<ClaimAnswer> {
    const { value, payloads } = await asked;
    return claimAnswer(value, payloads, claimed);
  }

  return {
    ...queue,
    claim: (request) => answer(queue.claim(1, () => request)),
    claimForConsumers: (request) => answer(queue.claimForConsumers(1, () => request)),
    finish: (results, nowMs, options = {}) =>
      Promise.all(results.map((result) => finish(result, nowMs, options))),
    list: (query) => readParts(queue.list, query),
    findSendable: async (id) => claimed.read(await queue.findSendable(id)).get(id),
  };
}

/** @param signal ends it before the next part; rejects with its reason */
async function readParts<T, Q>(
  ask: (query: Q) => Promise<Part<T, Q>>,
  query: Q,
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (let rest: Q | undefined = query; rest !== undefined;) {
    signal?.throwIfAborted();
    const part: Part<T, Q> = await ask(rest);
    all.push(...part.items);
    ({ rest } = part);
  }
  return all;
}
