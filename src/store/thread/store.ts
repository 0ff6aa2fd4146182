import { LRUCache } from "lru-cache";
import { asEvregError, type EvregError } from "../../domain/error.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../domain/subscription-settings.ts";
import type { Owner } from "../../runtime/owner-file.ts";
import type { EventRecord, RecordOptions, RecordOutcome } from "../events.ts";
import type { ClaimAnswer, ClaimedSubscription, FinishOutcome } from "../queue.ts";
import type { EncryptionKeys } from "../secret-cipher.ts";
import type { Store, StoreChange, StoreNode } from "../store.ts";
import type { OPERATIONS } from "../sql/operations.ts";
import type { StoredClaim, StoredSubscription, WireEvent } from "../sql/queue/claim.ts";
import type {
  Operations,
  OperationTraits,
  ReadPart,
  ReadOperation,
  WriteOperation,
} from "../sql/operation.ts";
import { settingsFromJson } from "../sql/sql.ts";
import type { OpenReport } from "./protocol.ts";
import type { StoreThreads, StoreThreadsOptions } from "./store-threads.ts";
import type { WriteQueue } from "./write-queue.ts";

/** How a store is opened, wherever its data are. */
export interface StoreOptions extends Partial<Pick<StoreThreadsOptions, "clock" | "logger" | "commits">> {
  /** Who opens it, for others who find it in use. */
  readonly owner: Owner;
  /** The keys of secrets. Without them secrets stay as they are, and data with encrypted ones cannot be opened. */
  readonly encryption?: EncryptionKeys | undefined;
  /** Whether a place that holds no data yet is refused, and left as it is. */
  readonly needsData?: boolean;
  /** Called after a commit that also did something that was not requested. */
  readonly onChange?: (change: StoreChange) => void;
  /** Called at most once, when the store can never commit again and must be closed. */
  readonly onFatal?: (error: EvregError) => void;
}

interface StoreParts {
  readonly threads: StoreThreads;
  readonly queue: WriteQueue;
  readonly report: OpenReport;
  readonly node: StoreNode;
  /** Ends what is under way, and releases the data. It is called once. */
  readonly close: () => Promise<void>;
}

/** An operation as the main thread asks for it. */
type Ask<T> = T extends ReadOperation<infer A, infer R> | WriteOperation<infer A, infer R>
  ? (...args: A) => Promise<R>
  : never;

type AnyAsk = (...args: readonly unknown[]) => Promise<unknown>;

/** The main thread's side of operations, by the parts of the store. */
type OperationCalls<P extends Operations> = {
  readonly [K in keyof P]: { readonly [M in keyof P[K]]: Ask<P[K][M]> };
};
type ThreadCalls = OperationCalls<typeof OPERATIONS>;

export function threadCalls<P extends Operations>({
  report,
  threads,
  queue,
}: Pick<StoreParts, "report" | "threads" | "queue">): OperationCalls<P> {
  const askFor = (operation: string, traits: OperationTraits): AnyAsk => {
    if (traits.kind === "read") return (...args) => threads.read(operation, args);
    const { isKept, rows } = traits;
    return (...args) => {
      // What is left out at the end is cut off, as JSON would make `null` of it.
      const call = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
      return queue.append({ operation, rows, isKept, call: () => call });
    };
  };
  const parts = Object.entries(report.operations).map(([part, own]) => {
    const named = Object.entries(own).map(([name, traits]) => [name, askFor(`${part}.${name}`, traits)]);
    return [part, Object.fromEntries(named) as unknown];
  });
  return Object.fromEntries(parts) as OperationCalls<P>;
}

/** The node of a store that one process has open. */
export const SOLE_NODE: StoreNode = {
  version: () => 0,
  takeChanged: () => [],
  owns: () => true,
  hasDuties: () => true,
  isAlike: () => Promise.resolve(true),
};

/**
 * The store as the rest of the product has it. Nearly every method is an operation of the store's thread (`operations.ts`) as it
 * is; here are those that have bytes, or take more than one call.
 */
export function createStore(parts: StoreParts): Store {
  const { threads, node } = parts;
  const { dataId, isNew } = parts.report;
  const calls: ThreadCalls = threadCalls(parts);
  const { catalog, events, queue, replays, tokens, audit, stats } = calls;
  let closing: Promise<void> | undefined;
  return {
    dataId,
    isNew,
    node,
    catalog,
    events: {
      ...events,
      record: (batch, nowMs, options = {}) => record(parts.queue, batch, nowMs, options),
    },
    queue: {
      ...queue,
      claim: async (request) => answerOf(await queue.claim(request)),
      claimForConsumers: async (request) => answerOf(await queue.claimForConsumers(request)),
      finish: (results, nowMs, options = {}) =>
        Promise.all(results.map(async (one) => outcomeOf(await queue.finish({ ...one, nowMs, options })))),
      async findSendable(id) {
        const found = await queue.findSendable(id);
        if (found !== undefined) readSettings(found);
        return found as ClaimedSubscription | undefined;
      },
      list: (query) => readParts(queue.list, query),
    },
    replays: {
      ...replays,
      async count(query, signal) {
        const counts = await readParts(replays.count, query, signal);
        return counts.reduce((sum, count) => sum + count, 0);
      },
    },
    tokens,
    audit,
    stats: { ...stats, figures: (query) => readParts(stats.figures, query) },
    damagedEvents: () => [...threads.damaged],
    health: () => threads.condition(),
    close: () => (closing ??= parts.close()),
  };
}

/** Records events, in several transactions where all of it would be too much for one. */
async function record(
  queue: WriteQueue,
  batch: readonly EventRecord[],
  nowMs: number,
  { atomic = false, claim }: RecordOptions,
): Promise<readonly RecordOutcome[]> {
  const outcomes: RecordOutcome[] = [];
  let portion = batch.length;
  while (outcomes.length < batch.length) {
    const own = batch.slice(outcomes.length, outcomes.length + portion);
    const call = (start: number): Parameters<ThreadCalls["events"]["record"]> => [
      { events: incoming(own, start), atomic, nowMs, claim: outcomes.length === 0 ? claim : undefined },
    ];
    const pieces = own.map(({ payload }) => payload);
    let taken: readonly RecordOutcome<StoredClaim>[];
    try {
      const write = { operation: "events.record", rows: own.length, pieces, call };
      taken = (await queue.append(write)) as readonly RecordOutcome<StoredClaim>[];
    } catch (error) {
      if (outcomes.length === 0) throw error;
      const failed = { kind: "failed", error: asEvregError(error) } as const;
      return batch.map((_, index) => outcomes[index] ?? failed);
    }
    // The rest is sent in portions of about what was not too much.
    if (taken.length < own.length) portion = 2 * taken.length;
    for (const outcome of taken) {
      const { payload } = batch[outcomes.length]!;
      for (const { event, subscription } of (outcome.kind === "recorded" && outcome.claims) || []) {
        Object.assign(event, { payload });
        readSettings(subscription);
      }
      outcomes.push(outcome as RecordOutcome);
    }
  }
  return outcomes;
}

/** About so many characters of settings are kept as they were read. */
const MAX_SETTINGS = 16 * 1_024 * 1_024;
const settingsRead = new LRUCache<string, SubscriptionSettings>({
  maxSize: MAX_SETTINGS,
  sizeCalculation: (_settings, text) => text.length,
  memoMethod: settingsFromJson,
});

/** Puts the settings of a claim's subscription in the place of their JSON, if another claim of the answer has not done so. */
function readSettings(stored: StoredSubscription): void {
  const { settings } = stored;
  if (settings === null) Object.assign(stored, { settings: NO_SETTINGS });
  if (typeof settings === "string") Object.assign(stored, { settings: settingsRead.memo(settings) });
}

function answerOf(answer: ClaimAnswer<StoredClaim>): ClaimAnswer {
  for (const { subscription } of answer.claims) readSettings(subscription);
  return answer as ClaimAnswer;
}

function outcomeOf(outcome: FinishOutcome<StoredClaim>): FinishOutcome {
  if (outcome.kind === "stored" && outcome.next !== undefined) readSettings(outcome.next.subscription);
  return outcome as FinishOutcome;
}

/** @param start where their payloads begin, one behind the other */
function incoming(events: readonly EventRecord[], start: number): readonly WireEvent[] {
  let end = start;
  return events.map(({ actionId, revision, payload, idempotencyKey, lookupOnly }) => {
    const offset = end;
    end += payload.byteLength;
    return { actionId, revision, offset, length: payload.byteLength, idempotencyKey, lookupOnly };
  });
}

/** @param signal ends it before the next part; rejects with its reason */
async function readParts<T, Q>(
  ask: (query: Q) => Promise<ReadPart<T, Q>>,
  query: Q,
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (let rest: Q | undefined = query; rest !== undefined;) {
    signal?.throwIfAborted();
    const part: ReadPart<T, Q> = await ask(rest);
    all.push(...part.items);
    ({ rest } = part);
  }
  return all;
}
