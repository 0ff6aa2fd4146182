import type { Cluster } from "../support/postgres.ts";
import { shardOf } from "../../src/store/rules/shards.ts";
import type { Actors } from "./actors.ts";
import type { DoneFault, Faults } from "./faults.ts";
import type { ChaosLoad } from "./load.ts";
import type { Arrival, ChaosReceiver } from "./receiver.ts";
import type { Sub } from "./scene.ts";

/** A gap in what comes for a subscription that is no longer is none. */
const GAP_MS = 2_500;
/** A fault shows this late in what arrives: requests that had left arrive still. */
const LATE_MS = 1_500;

export interface AuditParts {
  readonly cluster: Cluster;
  readonly database: string;
  readonly subs: readonly Sub[];
  readonly load: ChaosLoad;
  readonly actors: Actors;
  readonly faults: Faults;
  readonly receiver: ChaosReceiver;
}

interface StoredEvent {
  readonly rowid: number;
  readonly action: string;
  readonly n: number;
  readonly key: string;
}

/** What everything comes to. */
export class Audit {
  readonly #parts: AuditParts;
  /** Examples of what is wrong, for whoever looks for the cause. */
  readonly examples: string[] = [];
  #events: readonly StoredEvent[] = [];

  constructor(parts: AuditParts) {
    this.#parts = parts;
  }

  async figures() {
    this.#events = await this.#rows<StoredEvent>(
      `SELECT e.rowid::int, a.action, (p.payload ->> 'n')::int AS n, p.payload ->> 'key' AS key
        FROM evreg.event AS e JOIN evreg.action AS a ON a.rowid = e.action_id,
          LATERAL (SELECT convert_from(e.payload, 'UTF8')::json AS payload) AS p
        ORDER BY e.rowid`,
    );
    const { load, actors, faults } = this.#parts;
    const killed = faults.done.filter(({ kind }) => kind !== "restart" && kind !== "terminate");
    return {
      published: load.sent,
      acknowledged: load.acknowledged.size,
      stored: this.#events.length,
      attempts: this.#parts.subs.reduce((sum, sub) => sum + this.#arrivals(sub).length, 0),
      faults: faults.done.length,
      ...this.#losses(),
      ...(await this.#undelivered()),
      followed: actors.followed.length,
      ...this.#skipped(),
      ...this.#inversions(),
      pauses: actors.pauses.length,
      ...(await this.#begunAfter()),
      revoked: actors.revoked,
      revokedAccepted: actors.revokedAccepted,
      ...(await this.#rates()),
      ...(await this.#replays()),
      repeated: this.#repeats(),
      inFlightAtFaults: killed.reduce((sum, { inFlight }) => sum + inFlight, 0),
      ...this.#recovery(),
    };
  }

  #rows<T extends object>(text: string): Promise<readonly T[]> {
    return this.#parts.cluster.query<T>(text, this.#parts.database);
  }

  /** How many of them are wrong, with what is wrong of each. */
  #wrong<T>(all: Iterable<T>, what: (one: T) => string | undefined): number {
    let count = 0;
    for (const one of all) {
      const example = what(one);
      if (example === undefined) continue;
      count += 1;
      this.#example(example);
    }
    return count;
  }

  #example(what: string): void {
    if (this.examples.length < 60) this.examples.push(what);
  }

  #of(...kinds: readonly Sub["kind"][]): readonly Sub[] {
    return this.#parts.subs.filter(({ kind }) => kinds.includes(kind));
  }

  #arrivals(sub: Sub): readonly Arrival[] {
    return this.#parts.receiver.of(sub.name);
  }

  #losses() {
    const { acknowledged, refused } = this.#parts.load;
    const rowidOf = new Map(this.#events.map(({ n, rowid }) => [n, rowid]));
    return {
      lost: this.#wrong(acknowledged, ([n, rowid]) => {
        const stored = rowidOf.get(n);
        return stored === rowid ? undefined : `event ${n} was acknowledged as ${rowid}; stored is ${stored}`;
      }),
      storedTwice: this.#events.length - rowidOf.size,
      refusedButStored: [...refused].filter((n) => rowidOf.has(n)).length,
    };
  }

  /** Of subscriptions that were never paused: events that are not on record as delivered, or that the handler has not taken. */
  async #undelivered() {
    const subs = this.#of("bulk", "ordered", "keyed", "steady", "limited", "moved", "replayed");
    let undelivered = 0;
    for (const sub of subs) {
      const rows = await this.#rows<{ event_id: number; state: number }>(
        `SELECT event_id::int, state::int FROM evreg.delivery WHERE subscription_id = ${sub.rowid} AND state = 2`,
      );
      const delivered = new Set(rows.map(({ event_id }) => event_id));
      const taken = new Set(
        this.#arrivals(sub).flatMap(({ event, status }) => (status === 200 ? event : [])),
      );
      undelivered += this.#wrong(this.#events, ({ rowid, action }) => {
        if (action !== sub.action || (delivered.has(rowid) && taken.has(rowid))) return undefined;
        return `event ${rowid} to ${sub.name}: on record ${delivered.has(rowid)}, taken ${taken.has(rowid)}`;
      });
    }
    return { undelivered };
  }

  #skipped() {
    const { followed } = this.#parts.actors;
    const seen = new Set(followed);
    return {
      skipped: this.#wrong(this.#events, ({ rowid }) =>
        seen.has(rowid) ? undefined : `a reader skipped event ${rowid}`,
      ),
      followedOutOfOrder: followed.filter((rowid, place) => rowid <= (followed[place - 1] ?? 0)).length,
    };
  }

  /** First attempts after one of a later event of the same order, and repeats of older events after a later one had begun. */
  #inversions() {
    const keyOf = new Map(this.#events.map(({ rowid, key }) => [rowid, key]));
    let inversions = 0;
    let lateRepeats = 0;
    for (const sub of this.#of("ordered", "keyed")) {
      const latest = new Map<string, number>();
      const seen = new Set<number>();
      for (const arrival of this.#arrivals(sub)) {
        const { event } = arrival;
        const key = sub.kind === "keyed" ? keyOf.get(event)! : "";
        const before = latest.get(key) ?? 0;
        if (event < before) {
          const isFirst = !seen.has(event);
          if (isFirst) inversions += 1;
          else lateRepeats += 1;
          this.#example(
            `${sub.name}: ${shown(arrival)} ${isFirst ? "first" : "again"} after event ${before} of key ${key || "all"}`,
          );
        }
        seen.add(event);
        latest.set(key, Math.max(before, event));
      }
    }
    return { inversions, lateRepeats };
  }

  /** When attempts began, as they are on record, by `event_attempt`. */
  async #startsOf({ rowid }: Sub): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#rows<{ key: string; ms: number }>(
      `SELECT d.event_id || '_' || a.attempt AS key, a.started_ms::float8 AS ms FROM evreg.attempt AS a
          JOIN evreg.delivery AS d ON d.rowid = a.delivery_id WHERE d.subscription_id = ${rowid} AND a.outcome <> 'returned'
        UNION ALL SELECT event_id || '_1', (created_ms + first_start_ms)::float8 FROM evreg.delivery
          WHERE subscription_id = ${rowid} AND first_start_ms IS NOT NULL`,
    );
    return new Map(rows.map(({ key, ms }) => [key, ms]));
  }

  async #begunAfter() {
    const { pauses, moves } = this.#parts.actors;
    const begun = { arrivedAfterPause: 0, begunAfterPause: 0, begunAfterMove: 0 };
    for (const sub of this.#of("paused", "moved")) {
      const starts = await this.#startsOf(sub);
      const own = pauses.filter((pause) => pause.sub === sub);
      const ownMoves = moves.filter((move) => move.sub === sub);
      for (const arrival of this.#arrivals(sub)) {
        const { atMs, version } = arrival;
        const beganMs = beganAt(arrival, starts);
        const pause = own.find(({ answeredMs, endedMs }) => answeredMs < atMs && atMs < endedMs);
        if (pause !== undefined) begun.arrivedAfterPause += 1;
        if (pause !== undefined && beganMs > pause.answeredMs) {
          begun.begunAfterPause += 1;
          this.#example(
            `${sub.name} was paused at ${new Date(pause.answeredMs).toISOString()}: ${shown(arrival)}`,
          );
        }
        const move = ownMoves.find(({ before }) => before === version + 1);
        if (move !== undefined && beganMs > move.answeredMs) {
          begun.begunAfterMove += 1;
          this.#example(
            `${sub.name} was moved at ${new Date(move.answeredMs).toISOString()}: ${shown(arrival)}`,
          );
        }
      }
    }
    return begun;
  }

  /** The most attempts that began within a second, beside what is allowed. */
  async #rates() {
    let overRate = 0;
    let mostInSecond = 0;
    for (const sub of this.#of("limited")) {
      const starts = await this.#startsOf(sub);
      const began = this.#arrivals(sub).map((arrival) => {
        const beganMs = beganAt(arrival, starts);
        // Of one whose beginning is known to the second only, its arrival is as good.
        return beganMs % 1_000 === 0 ? arrival.atMs : beganMs;
      });
      const times = began.toSorted((one, other) => one - other);
      const allowed = Math.ceil(sub.rateLimit! * 1.05 + 1);
      for (let first = 0, last = 0; last < times.length; last += 1) {
        while (times[last]! - times[first]! >= 1_000) first += 1;
        const count = last - first + 1;
        mostInSecond = Math.max(mostInSecond, count);
        if (count <= allowed) continue;
        overRate += 1;
        this.#example(
          `${sub.name}: ${count} began within a second at ${new Date(times[last]!).toISOString()}`,
        );
      }
    }
    return { overRate, mostInSecond };
  }

  async #replays() {
    const rows = await this.#rows<{ status: string; queued: number; name: string }>(
      `SELECT r.status, r.queued::int, s.subscription AS name FROM evreg.replay AS r JOIN evreg.subscription AS s ON s.rowid = r.subscription_id`,
    );
    let missing = 0;
    for (const sub of this.#of("replayed")) {
      const sent = new Set(this.#arrivals(sub).map(({ event, attempt }) => `${event}_${attempt}`)).size;
      const queued = rows.filter(({ name }) => name === sub.name).reduce((sum, row) => sum + row.queued, 0);
      const own = this.#events.filter(({ action }) => action === sub.action).length;
      missing += Math.max(0, own + queued - sent);
    }
    return {
      replays: rows.length,
      replaysUndone: rows.filter(({ status }) => status !== "done").length,
      replayed: rows.reduce((sum, { queued }) => sum + queued, 0),
      replayedMissing: missing,
    };
  }

  /** Attempts that came after the handler had taken the event. */
  #repeats(): number {
    let repeats = 0;
    for (const sub of this.#parts.subs.filter(({ kind }) => kind !== "replayed")) {
      const taken = new Set<number>();
      for (const { event, status } of this.#arrivals(sub)) {
        if (taken.has(event)) repeats += 1;
        if (status === 200) taken.add(event);
      }
    }
    return repeats;
  }

  /** How long the deliveries of a subscription stood still from the last fault that concerns it, and gaps that no fault explains. */
  #recovery() {
    let gaps = 0;
    let longestGapMs = 0;
    let recoveredMs = 0;
    let unexplainedMs = 0;
    for (const sub of this.#of("steady")) {
      const times = this.#arrivals(sub)
        .map(({ atMs }) => atMs)
        .toSorted((one, other) => one - other);
      for (const [place, endMs] of times.entries()) {
        const beganMs = times[place - 1] ?? endMs;
        if (endMs - beganMs < GAP_MS) continue;
        gaps += 1;
        longestGapMs = Math.max(longestGapMs, endMs - beganMs);
        const faults = this.#faultsIn(sub, beganMs, endMs);
        const last = faults.at(-1);
        // What was delivered after a fault had recovered from it.
        const stillMs = endMs - Math.max(beganMs, last?.atMs ?? beganMs);
        if (last === undefined) unexplainedMs = Math.max(unexplainedMs, stillMs);
        else recoveredMs = Math.max(recoveredMs, stillMs);
        if (stillMs < 12_500) continue;
        this.#example(
          `${sub.name} stood still from ${new Date(beganMs).toISOString()} for ${endMs - beganMs} ms: ${faults.map(({ what, atMs }) => `${what} at +${atMs - beganMs} ms`).join(", ")}`,
        );
      }
    }
    return { gaps, longestGapMs, recoveredMs, unexplainedMs };
  }

  #faultsIn(sub: Sub, beganMs: number, endMs: number): readonly DoneFault[] {
    const { faults } = this.#parts;
    const shard = shardOf(sub.rowid);
    return faults.done.filter(({ atMs, endMs: overMs, pid, kind }) => {
      if (Math.max(atMs, overMs) < beganMs - LATE_MS || atMs > endMs) return false;
      return kind === "restart" || kind === "terminate" || faults.ownerAt(shard, atMs) === pid;
    });
  }
}

function shown({ event, attempt, atMs, beganS, status }: Arrival): string {
  return `event ${event} attempt ${attempt} at ${new Date(atMs).toISOString()} (began in second ${beganS % 60}, answered ${status})`;
}

/**
 * When an attempt began: as it is on record, by the clock of the database, which is that of this machine. One that was cut
 * short has no such record, but the second of its beginning is among its headers.
 */
function beganAt({ event, attempt, beganS }: Arrival, starts: ReadonlyMap<string, number>): number {
  const recordedMs = starts.get(`${event}_${attempt}`) ?? beganS * 1_000;
  // After a takeover the record under this number may be of another attempt than the one that arrived.
  return Math.floor(recordedMs / 1_000) === beganS ? recordedMs : beganS * 1_000;
}
