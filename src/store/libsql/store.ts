import type { EventRecord, RecordOutcome, StoredEvent } from "../events.ts";
import type { CommitCounts, DamagedEvents } from "../health.ts";
import type { ServiceEventCounts } from "../queue.ts";
import { OpenedSecrets } from "../secret-cipher.ts";
import type { Store } from "../store.ts";
import type { WireEvent } from "./events/list.ts";
import { recordWrite } from "./events/record-wire.ts";
import type { Telling } from "./events/service-events.ts";
import type { Backups } from "./files/backup.ts";
import { REMOVED_ROWS } from "./history/retention.ts";
import type {
  MergedResult,
  ReadArgs,
  ReadName,
  ReadResult,
  WriteArgs,
  WriteName,
  WriteResult,
} from "./operations.ts";
import { claimAnswer, claimCall, finishWrite } from "./queue/wire.ts";
import { bytesAt, fromWireError, type WireOutcome } from "./thread/protocol.ts";
import type { Keeper } from "./thread/supervisor.ts";
import type { FlightQueue, Landed, QueuedWrite } from "./thread/write-queue.ts";

export interface StoreListeners {
  /** Called after each commit in which the service recorded events about itself, with their deliveries that are due. */
  readonly onServiceEvents?: (counts: ServiceEventCounts) => void;
  /** Called with how many deliveries failed for good by a change of their subscription, not by an attempt. */
  readonly onFailed?: (deliveries: number) => void;
}

/** What the store is made of. */
interface StoreParts {
  readonly keeper: Keeper;
  readonly queue: FlightQueue;
  readonly commits: CommitCounts;
  readonly damaged: DamagedEvents;
  readonly backups: Backups;
  /** See `data-identity.ts`. */
  readonly dataId: string;
  /** What the file's secrets are encrypted with, where they are. */
  readonly key: Uint8Array | undefined;
  /** Called once: ends what is under way, and frees the file. */
  readonly letGo: () => Promise<void>;
}

/**
 * The store as the rest of the product has it: each task becomes a message to the thread that owns the data file.
 * @param listeners as in `OpenOptions`
 */
export function createLibsqlStore(
  { keeper, queue, commits, damaged, backups, dataId, key, letGo }: StoreParts,
  { onServiceEvents, onFailed }: StoreListeners = {},
): Store {
  const secrets = new OpenedSecrets(key);
  let closing: Promise<void> | undefined;
  const fanOut = new FanOut();

  async function read<N extends ReadName>(
    name: N,
    ...args: ReadArgs<N>
  ): Promise<{ value: ReadResult<N>; bytes: ArrayBuffer | undefined }> {
    const { outcomes, bytes } = await keeper.read(name, args);
    return { value: valueOf(outcomes[0]) as ReadResult<N>, bytes };
  }

  /** @param rows it writes, about */
  async function writeRows<N extends WriteName>(
    rows: number,
    name: N,
    ...args: WriteArgs<N>
  ): Promise<{ value: WriteResult<N>; bytes: ArrayBuffer | undefined }> {
    const { outcome, bytes } = await add({ bytes: 0, rows, pack: () => ({ name, args }) });
    return { value: valueOf(outcome) as WriteResult<N>, bytes };
  }

  const write = async <N extends WriteName>(name: N, ...args: WriteArgs<N>): Promise<WriteResult<N>> =>
    (await writeRows(1, name, ...args)).value;

  function add(queued: QueuedWrite): Promise<Landed> {
    return queue.add(queued);
  }

  const ask = async <N extends ReadName>(name: N, ...args: ReadArgs<N>): Promise<ReadResult<N>> =>
    (await read(name, ...args)).value;

  function heard<T>({ answer, told, failed = 0 }: Telling<T>): T {
    if (told !== undefined) onServiceEvents?.(told);
    if (failed > 0) onFailed?.(failed);
    return answer;
  }

  function stored({ payload, ...event }: WireEvent, bytes: ArrayBuffer | undefined): StoredEvent {
    if (payload === null) damaged.note(event.rowid);
    return { ...event, payload: payload === null ? undefined : bytesAt(bytes, payload) };
  }

  return {
    dataId,
    catalog: {
      createAction: (input, nowMs) => write("createAction", input, nowMs),
      findAction: (name) => ask("findAction", name),
      listActions: (query) => ask("listActions", query),
      reviseAction: (input, nowMs) => write("reviseAction", input, nowMs),
      findRevision: (action, revision) => ask("findRevision", action, revision),
      listRevisions: (query) => ask("listRevisions", query),
      createSubscription: (input, nowMs) => write("createSubscription", input, nowMs, key),
      findSubscription: (id) => ask("findSubscription", id),
      listSubscriptions: (query) => ask("listSubscriptions", query),
      updateSubscription: async (id, patch, nowMs) =>
        damaged.mended(id, heard(await write("updateSubscription", id, patch, nowMs, key))),
      rotateSecret: (id, rotation, nowMs) => write("rotateSecret", id, rotation, nowMs, key),
      deleteSubscription: async (id, nowMs) => heard(await write("deleteSubscription", id, nowMs)),
    },
    events: {
      async record(batch, nowMs, options) {
        if (batch.length === 0) return [];
        const { outcome } = await add(
          recordWrite(batch, nowMs, options?.atomic === true, fanOut.rowsOf(batch)),
        );
        const outcomes = valueOf(outcome) as MergedResult<"recordEvents">;
        fanOut.note(batch, outcomes);
        for (const one of outcomes) if (one.kind === "recorded") keeper.noteRecorded(one.rowid);
        return outcomes;
      },
      async list(query) {
        const { value, bytes } = await read("listEvents", query);
        return { events: value.events.map((event) => stored(event, bytes)), total: value.total };
      },
      async find(id) {
        const { value, bytes } = await read("findEvent", id);
        return value === undefined ? undefined : stored(value, bytes);
      },
      findExpired: (query) => ask("findExpired", query),
      remove: async (eventIds) => (await writeRows(REMOVED_ROWS, "removeEvents", eventIds)).value,
    },
    queue: {
      async claim(request) {
        const { value, bytes } = await writeRows(1, "claimDue", claimCall(request, damaged.subscriptions));
        for (const id of value.unreadable) damaged.noteSubscription(id);
        for (const eventId of value.damaged) damaged.note(eventId);
        return claimAnswer(value, bytes, secrets);
      },
      async finish(results, nowMs, options) {
        if (results.length === 0) {
          return {
            applied: [],
            deferred: [],
            ended: { delivered: 0, failed: 0, filtered: 0 },
            deactivated: [],
          };
        }
        const { outcome } = await add(finishWrite(results, nowMs, options));
        return heard(valueOf(outcome) as MergedResult<"finishAttempts">);
      },
      releaseExpired: (nowMs) => write("releaseExpired", nowMs),
      list: (query) => ask("listDeliveries", query),
      find: (id) => ask("findDelivery", id),
      retry: (id, nowMs) => write("retryDelivery", id, nowMs),
      skip: async (id, nowMs) => heard(await write("skipDelivery", id, nowMs)),
      countPending: (id) => ask("countWaiting", id),
      backlog: (nowMs) => ask("countBacklog", nowMs),
    },
    replays: {
      plan: (request) => ask("planReplay", request),
      count: (plan) => ask("countReplay", plan),
      start: (plan, nowMs) => write("startReplay", plan, nowMs),
      advance: async (id, step) => heard((await writeRows(step.most, "stepReplay", id, step)).value),
      running: () => ask("runningReplays"),
      find: (id) => ask("findReplay", id),
      list: (query) => ask("listReplays", query),
      cancel: async (id, nowMs) => heard(await write("cancelReplay", id, nowMs)),
    },
    tokens: {
      create: (input, nowMs) => write("createToken", input, nowMs),
      find: (hash) => ask("findToken", hash),
      list: () => ask("listTokens"),
      revoke: (id, managedAtMs) => write("revokeToken", id, managedAtMs),
      async recordUses(uses) {
        if (uses.length > 0) await write("touchTokens", uses);
      },
    },
    admin: {
      backup: (signal) => backups.make(signal),
      damagedEvents: () => damaged.events,
      unreadableSubscriptions: () => damaged.subscriptions,
      commits: () => commits,
      health: () => keeper.condition(),
    },
    close: () => (closing ??= letGo()),
  };
}

function valueOf(outcome: WireOutcome | undefined): unknown {
  if (outcome === undefined) throw new Error("a question was not answered");
  if ("error" in outcome) throw fromWireError(outcome.error);
  return outcome.ok;
}

/**
 * How many deliveries an event of each action made the last time: what a publish will have to write is only known once
 * it is written, and this foretells it well enough to keep flights short. Subscriptions change seldom.
 */
class FanOut {
  readonly #deliveries = new Map<number, number>();

  /** Rows these are likely to be: one an event, one a delivery. */
  rowsOf(batch: readonly EventRecord[]): number {
    return batch.reduce((sum, { actionId }) => sum + 1 + (this.#deliveries.get(actionId) ?? 0), 0);
  }

  note(batch: readonly EventRecord[], outcomes: readonly RecordOutcome[]): void {
    let noted = -1;
    for (const [index, { actionId }] of batch.entries()) {
      const outcome = outcomes[index];
      // Those of one call were made by the same subscriptions.
      if (outcome?.kind !== "recorded" || actionId === noted) continue;
      noted = actionId;
      if (outcome.deliveries === 0) this.#deliveries.delete(actionId);
      else this.#deliveries.set(actionId, outcome.deliveries);
    }
  }
}
