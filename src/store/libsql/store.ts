import { asEvregError } from "../../domain/error.ts";
import type { EventRecord, NextEvent, RecordOutcome, StoredEvent } from "../events.ts";
import type { DamagedEvents } from "../health.ts";
import type { AttemptResult, FinishOptions, FinishOutcome, RecordClaim } from "../queue.ts";
import type { Store, StoreChange } from "../store.ts";
import type { WireEvent } from "./events/list.ts";
import type { WireNextEvent } from "./events/next.ts";
import { packEvents, type RecordCall, type StoredOutcome, unpackOutcomes } from "./events/record-wire.ts";
import type { WithServiceEvents } from "./events/service-events.ts";
import type { Backups } from "./files/backup.ts";
import type { RangePlan } from "./history/replays.ts";
import { type ExpiredEvents, MAX_REMOVED_ROWS } from "./history/retention.ts";
import type {
  BatchedName,
  ReadArgs,
  ReadName,
  ReadResult,
  WriteArgs,
  WriteName,
  WriteResult,
} from "./operations.ts";
import {
  claimAnswer,
  claimCall,
  ClaimedSubscriptions,
  type FinishCall,
  finishCall,
  outcomeOf,
  type PackedFinished,
  packResults,
  recordedClaims,
} from "./queue/wire.ts";
import { bytesAt } from "./thread/protocol.ts";
import { checkText } from "./thread/sql.ts";
import type { WorkerSupervisor } from "./thread/supervisor.ts";
import type { Reply } from "./thread/worker-client.ts";
import type { Codec, WriteQueue } from "./thread/write-queue.ts";

/** How the writes that are done together cross to the store's thread. */
export const CODECS: Readonly<Record<BatchedName, Codec>> = {
  recordEvents: { pack: packEvents, unpack: unpackOutcomes },
  finishAttempts: { pack: packResults, unpack: (packed) => packed as PackedFinished[] },
};

/** So many rows go with what was asked before them or alone, and in a transaction of their own behind others. */
const ALONE_ROWS = 10_000;

/** What the store is made of. */
interface StoreParts {
  readonly supervisor: WorkerSupervisor;
  readonly queue: WriteQueue;
  readonly damaged: DamagedEvents;
  readonly backups: Backups;
  /** See `files/id-reservation.ts`. */
  readonly dataId: string;
  /** What the file's secrets are encrypted with, where they are. */
  readonly key: Uint8Array | undefined;
  readonly onChange: (change: StoreChange) => void;
  /** Called once: ends what is under way, and releases the file. */
  readonly close: () => Promise<void>;
}

/** The store as the rest of the product has it: each task becomes a message to the thread that owns the data file. */
export function createLibsqlStore(parts: StoreParts): Store {
  const { supervisor, queue, damaged, backups, dataId, key, onChange } = parts;
  const claimedSubscriptions = new ClaimedSubscriptions(key);
  let closing: Promise<void> | undefined;

  const readReply = <N extends ReadName>(name: N, ...args: ReadArgs<N>): Promise<Reply<ReadResult<N>>> =>
    supervisor.read(name, args) as Promise<Reply<ReadResult<N>>>;

  /** @param rows about how many it writes */
  const writeRows = <N extends WriteName>(
    rows: number,
    name: N,
    ...args: WriteArgs<N>
  ): Promise<Reply<WriteResult<N>>> =>
    queue.append({ name, call: args, rows }) as Promise<Reply<WriteResult<N>>>;

  const write = async <N extends WriteName>(name: N, ...args: WriteArgs<N>): Promise<WriteResult<N>> =>
    (await writeRows(1, name, ...args)).value;

  const read = async <N extends ReadName>(name: N, ...args: ReadArgs<N>): Promise<ReadResult<N>> =>
    (await readReply(name, ...args)).value;

  function reported<T>({ answer, serviceEvents, failed = 0 }: WithServiceEvents<T>): T {
    if (serviceEvents !== undefined) onChange({ serviceEvents });
    if (failed > 0) onChange({ failed });
    return answer;
  }

  /** In several transactions, where all of it would be too much for one. */
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
      const events = batch.slice(outcomes.length, outcomes.length + portion);
      let taken: readonly StoredOutcome[];
      try {
        // A claim is for the first event that is recorded.
        const isFirst = outcomes.every(({ kind }) => kind !== "recorded");
        const call: RecordCall = { events, nowMs, atomic, claim: isFirst ? claim : undefined };
        const payloads = events.map(({ payload }) => payload);
        const pending = { name: "recordEvents", call, rows: events.length, payloads };
        taken = (await queue.append(pending)).value as readonly StoredOutcome[];
      } catch (error) {
        if (outcomes.length === 0) throw error;
        const failed = { kind: "failed", error: asEvregError(error) } as const;
        return batch.map((_, index) => outcomes[index] ?? failed);
      }
      // The rest is sent in portions of about what was not too much.
      if (taken.length < events.length) portion = 2 * taken.length;
      for (const outcome of taken) {
        if (outcome.kind === "recorded") supervisor.noteRecorded(outcome.rowid);
        outcomes.push(withClaims(outcome, batch[outcomes.length]!, claim));
      }
    }
    return outcomes;
  }

  function withClaims(
    outcome: StoredOutcome,
    { payload }: EventRecord,
    claim: RecordClaim | undefined,
  ): RecordOutcome {
    if (outcome.kind !== "recorded" || outcome.leases === undefined || claim === undefined) return outcome;
    const { leases, ...recorded } = outcome;
    const { rowid: eventId, timestampedMs } = recorded;
    const event = { eventId, action: claim.action, payload, timestampedMs };
    return { ...recorded, claims: recordedClaims(leases, event, claimedSubscriptions) };
  }

  async function finish(
    result: AttemptResult,
    nowMs: number,
    { disableAfterMs }: FinishOptions,
  ): Promise<FinishOutcome> {
    const call: FinishCall = finishCall(result, nowMs, disableAfterMs);
    const payloads = call.text === undefined ? [] : [call.text];
    const pending = { name: "finishAttempts", call, rows: 1, payloads, lingers: true };
    const packed = (await queue.append(pending)).value as PackedFinished;
    return outcomeOf(typeof packed === "number" ? { state: packed } : reported(packed));
  }

  function storedEvent({ payload, ...event }: WireEvent, bytes: ArrayBuffer | undefined): StoredEvent {
    if (payload === null) damaged.note(event.rowid);
    return { ...event, payload: payload ? bytesAt(bytes, payload) : undefined };
  }

  function nextEvent({ payload, ...event }: WireNextEvent, bytes: ArrayBuffer | undefined): NextEvent {
    if (payload === undefined) return event;
    if (payload === null) damaged.note(event.rowid);
    return { ...event, payload: payload === null ? null : bytesAt(bytes, payload) };
  }

  return {
    dataId,
    catalog: {
      createAction: (input, nowMs, by) => write("createAction", input, nowMs, by),
      findAction: (name) => read("findAction", name),
      listActions: (query) => read("listActions", query),
      reviseAction: (input, nowMs, by) => write("reviseAction", input, nowMs, by),
      findRevision: (action, revision) => read("findRevision", action, revision),
      listRevisions: (query) => read("listRevisions", query),
      createSubscription: (input, nowMs, by) => write("createSubscription", input, nowMs, key, by),
      findSecret: (id) => read("findSecret", id, key),
      findSubscription: (id) => read("findSubscription", id),
      findDeletedSubscription: (id) => read("findDeletedSubscription", id),
      listSubscriptions: (query) => read("listSubscriptions", query),
      async updateSubscription(id, patch, nowMs, by) {
        const updated = await write("updateSubscription", id, patch, nowMs, key, by);
        damaged.retrySubscription(id);
        return reported(updated);
      },
      rotateSecret: (id, rotation, nowMs, by) => write("rotateSecret", id, rotation, nowMs, key, by),
      noteSecretUse: (id, consumer, nowMs, by) => write("noteSecretUse", id, consumer, nowMs, by),
      deleteSubscription: async (id, nowMs, by) => reported(await write("deleteSubscription", id, nowMs, by)),
    },
    events: {
      record: (batch, nowMs, { atomic = false, claim } = {}) => record(batch, nowMs, atomic, claim),
      async list(query) {
        const { value, bytes } = await readReply("listEvents", query);
        return { ...value, events: value.events.map((event) => storedEvent(event, bytes)) };
      },
      async find(id) {
        const { value, bytes } = await readReply("findEvent", id);
        return value === undefined ? undefined : storedEvent(value, bytes);
      },
      withDeliveries: (ids, wanted, applications) => read("eventsWithDeliveries", ids, wanted, applications),
      countDeliveries: (ids, applications) => read("countDeliveries", ids, applications),
      async next(query) {
        const { value, bytes } = await readReply("nextEvents", query);
        return { ...value, events: value.events.map((event) => nextEvent(event, bytes)) };
      },
      bounds: (fromMs) => read("eventBounds", fromMs),
      async removeExpired(range, next = { events: [], after: 0 }) {
        const given = next as ExpiredEvents;
        const { events, after } =
          given.events.length > 0 ? given : await read("findExpired", range, given.after);
        const { handled, ...removed } =
          events.length === 0
            ? { handled: 0, events: 0, deliveries: 0 }
            : (await writeRows(MAX_REMOVED_ROWS, "removeEvents", events)).value;
        const remaining = events.slice(handled);
        const isDone = remaining.length === 0 && after === undefined;
        return { ...removed, next: isDone ? undefined : { events: remaining, after } };
      },
    },
    queue: {
      async claim(request) {
        const call = [claimCall(request, damaged.subscriptions)];
        const pending = { name: "claimDue", call, rows: 1, lingers: true };
        const committed = await queue.append(pending);
        const value = committed.value as WriteResult<"claimDue">;
        for (const id of value.unreadable) damaged.noteSubscription(id);
        for (const eventId of value.damaged) damaged.note(eventId);
        return claimAnswer(value, committed.bytes, claimedSubscriptions);
      },
      async finish(results, nowMs, options = {}) {
        const [first] = results;
        // Nearly always one; `all` would take as long as everything else here.
        if (first !== undefined && results.length === 1) return [await finish(first, nowMs, options)];
        return Promise.all(results.map((result) => finish(result, nowMs, options)));
      },
      extend: (leases) => write("extendLeases", leases),
      findLeased: (subscription, leases) => read("findLeased", subscription, leases),
      releaseExpired: (nowMs) => write("releaseExpired", nowMs),
      moveWaits: async (backMs, nowMs) => (await writeRows(ALONE_ROWS, "moveWaits", backMs, nowMs)).value,
      list: (query) => read("listDeliveries", query),
      find: (id) => read("findDelivery", id),
      retry: (id, nowMs, by) => write("retryDelivery", id, nowMs, by),
      skip: async (id, nowMs, by) => reported(await write("skipDelivery", id, nowMs, by)),
      findSendable: async (id) => claimedSubscriptions.read(await read("findSendable", id)).get(id),
      attempts: (id, limit) => read("listAttempts", id, limit),
      attention: (query) => read("listAttention", query),
      countPending: (id) => read("countPending", id),
      backlog: (nowMs, of) => read("countBacklog", nowMs, of),
    },
    replays: {
      plan: (request) => read("planReplay", request),
      async count(plan, signal) {
        let total = 0;
        let { scope } = plan as RangePlan;
        while (scope.length > 0) {
          signal?.throwIfAborted();
          const counted = await read("countReplay", { ...plan, scope });
          total += counted.count;
          scope = counted.rest;
        }
        return total;
      },
      start: (plan, nowMs, by) => write("startReplay", plan as RangePlan, nowMs, by),
      advance: async (id, step) =>
        reported((await writeRows(step.maxQueued, "advanceReplay", id, step)).value),
      running: () => read("runningReplays"),
      find: (id) => read("findReplay", id),
      list: (query) => read("listReplays", query),
      cancel: async (id, nowMs, by) => reported(await write("cancelReplay", id, nowMs, by)),
    },
    tokens: {
      create: (input, nowMs, by) => write("createToken", input, nowMs, by),
      find: (hash) => read("findToken", hash),
      list: () => read("listTokens"),
      revoke: (id, nowMs, { managed = false, by } = {}) =>
        write("revokeToken", id, nowMs, managed ? nowMs : undefined, by),
      async recordUses(uses) {
        if (uses.length > 0) await write("recordTokenUses", uses);
      },
    },
    audit: {
      list: (query) => read("listAudit", query),
      removeExpired: async (beforeMs) => (await writeRows(MAX_REMOVED_ROWS, "removeAudit", beforeMs)).value,
    },
    stats: {
      countRefused: (counts) => write("countRefused", counts),
      fold: async (beforeMs, known) =>
        (await writeRows(MAX_REMOVED_ROWS, "foldStats", beforeMs, known)).value,
      steps: (query) => read("readStatsSteps", query),
      totals: (query) => read("readStatsTotals", query),
      open: (query) => read("readOpenStats", query),
      actions: (query) => read("statsActions", query),
      subscriptions: (query) => read("statsSubscriptions", query),
      removeExpired: async (nowMs) => (await writeRows(MAX_REMOVED_ROWS, "removeStats", nowMs)).value,
    },
    admin: {
      backup: (signal) => backups.make(signal),
      damagedEvents: () => damaged.events,
      unreadableSubscriptions: () => damaged.subscriptions,
      health: () => supervisor.condition(),
    },
    close: () => (closing ??= parts.close()),
  };
}
