import { EvregError } from "../../domain/error.ts";
import type { EventRecord, RecordOutcome } from "../events.ts";

export interface RecordingCall {
  readonly atomic: boolean;
  readonly nowMs: number;
  readonly events: readonly EventRecord[];
}

/** An action as it is while events are recorded. */
export interface ActionInForce {
  readonly application: string;
  /** The revision in force; `null` once the action is retired. */
  readonly revision: number | null;
  readonly subscribers: number;
  /** Whether its payloads are read, for the keys that subscriptions order by. */
  readonly isKeyed: boolean;
}

/** The event that has used an idempotency key. */
export interface KeyUse {
  readonly rowid: number;
  readonly timestampedMs: number;
  readonly revision: number;
  /** Whether it has the action and the payload of the candidate that uses the key now. */
  readonly isSame: boolean;
}

/** The numbers that were given last, and when. */
export interface LastNumbers {
  /** The largest rowids ever given. */
  readonly event: number;
  readonly delivery: number;
  /**
   * The time of the last event or delivery since the clock was set back, whichever is later; 0 when there is none. What comes next
   * is no earlier.
   */
  readonly lastMs: number;
}

/** What a store reads before it records. */
interface RecordingFacts {
  /** The existing actions that candidates name. */
  readonly actions: ReadonlyMap<number, ActionInForce>;
  /** The stored events that have used the keys of candidates. */
  readonly storedUses: ReadonlyMap<EventRecord, KeyUse>;
  readonly last: LastNumbers;
}

/** An event that is to be stored, with a delivery to each subscriber of its action. */
export interface AcceptedEvent extends EventRecord {
  readonly rowid: number;
  readonly timestampedMs: number;
}

/**
 * Once a transaction writes so many rows, a call that is not atomic gets one more event in, and the rest is for its caller to
 * send again. A delivery takes about 2.5 µs, so 1,000 events to 1,000 subscriptions each would stop all other work for seconds.
 */
const MANY_ROWS = 4_000;
/** To read so much of a payload takes as long as to write a row. */
const ROW_BYTES = 256;

/** Decides which events of the calls of one transaction are stored, and under which numbers. */
export class Recording {
  /** The events that are to be stored, by rising rowids. */
  readonly accepted: AcceptedEvent[] = [];
  readonly #facts: RecordingFacts;
  /** The accepted events that have an idempotency key, by application and key. */
  readonly #byKey = new Map<string, AcceptedEvent>();
  #last: LastNumbers;
  /** About how many rows are to be stored, with what is to be read for them. */
  #rows = 0;

  constructor(facts: RecordingFacts) {
    this.#facts = facts;
    this.#last = facts.last;
  }

  /**
   * @param maxDeliveries of an atomic call
   * @returns by event, what comes of it; of a call that is not atomic only for the first ones, where all would be too many
   * @throws EvregError `too_large` for an atomic call that makes more deliveries; then nothing of the recording counts
   */
  decide({ atomic, nowMs, events }: RecordingCall, maxDeliveries = Infinity): readonly RecordOutcome[] {
    const before = { accepted: this.accepted.length, last: this.#last };
    const decisions: RecordOutcome[] = [];
    for (const candidate of events) {
      if (!atomic && decisions.length > 0 && this.#rows >= MANY_ROWS) break;
      decisions.push(this.#decideOne(candidate, nowMs));
    }
    if (!atomic) return decisions;
    const deliveries = this.#last.delivery - before.last.delivery;
    if (deliveries > maxDeliveries) throw tooManyDeliveries(deliveries, maxDeliveries);
    if (decisions.every(isStored)) return decisions;
    for (const event of this.accepted.splice(before.accepted)) this.#byKey.delete(this.#keyOf(event));
    this.#last = before.last;
    return decisions.map((decision) => (isStored(decision) ? { kind: "left_out" } : decision));
  }

  #decideOne(candidate: EventRecord, nowMs: number): RecordOutcome {
    const use = this.#useOfKey(candidate);
    if (use !== undefined) {
      const { rowid, timestampedMs, revision, isSame } = use;
      return isSame ? { kind: "replayed", rowid, timestampedMs, revision } : { kind: "key_conflict", rowid };
    }
    const action = this.#facts.actions.get(candidate.actionId);
    if (action?.revision !== candidate.revision || candidate.lookupOnly) return { kind: "stale" };
    const { rowid, timestampedMs } = this.#accept(candidate, action, nowMs);
    return { kind: "recorded", rowid, timestampedMs, deliveries: action.subscribers };
  }

  /** Answers the use of a key. A stored event comes before one of this transaction. */
  #useOfKey(candidate: EventRecord): KeyUse | undefined {
    if (candidate.idempotencyKey === undefined) return undefined;
    const stored = this.#facts.storedUses.get(candidate);
    if (stored !== undefined) return stored;
    const accepted = this.#byKey.get(this.#keyOf(candidate));
    if (accepted === undefined) return undefined;
    const isSame =
      accepted.actionId === candidate.actionId && Buffer.compare(accepted.payload, candidate.payload) === 0;
    return { ...accepted, isSame };
  }

  /** Answers the name of a key here. A key is its application's, and has no line end. */
  #keyOf({ actionId, idempotencyKey }: EventRecord): string {
    return `${idempotencyKey}\n${this.#facts.actions.get(actionId)?.application}`;
  }

  #accept(candidate: EventRecord, { subscribers, isKeyed }: ActionInForce, nowMs: number): AcceptedEvent {
    const { event, delivery } = this.#last;
    const timestampedMs = Math.max(nowMs, this.#last.lastMs);
    const accepted = { ...candidate, rowid: event + 1, timestampedMs };
    this.#last = { event: event + 1, delivery: delivery + subscribers, lastMs: timestampedMs };
    this.accepted.push(accepted);
    this.#rows += 1 + subscribers + (isKeyed ? candidate.payload.length / ROW_BYTES : 0);
    if (candidate.idempotencyKey !== undefined) this.#byKey.set(this.#keyOf(candidate), accepted);
    return accepted;
  }
}

function tooManyDeliveries(deliveries: number, limit: number): EvregError {
  const [size, max] = [deliveries, limit].map((count) => count.toLocaleString("en"));
  const message = `The batch makes ${size} deliveries; with \`atomic\` it may make ${max}. Send fewer events at a time, or leave out \`atomic\` (on the command line --atomic or --on-error stop).`;
  return new EvregError("too_large", message, { limit, size: deliveries });
}

function isStored({ kind }: RecordOutcome): boolean {
  return kind === "recorded" || kind === "replayed";
}
