import { setTimeout as wait } from "node:timers/promises";
import { EvregError } from "../../domain/error.ts";
import { shardOf } from "../rules/shards.ts";
import type { OtherNodes, StoreNode } from "../store.ts";
import { NOTHING_STORED } from "../thread/store-threads.ts";
import { CONNECT_TIMEOUT_MS, DatabaseConnection, type DatabaseSetup } from "./connection.ts";
import { DIFFERING, IS_LIVING, IS_SERVING, LEASE_END, LEASE_SECONDS, type Sharing } from "./nodes.ts";
import { SCHEMA } from "./tables.ts";

/** How often a node looks at what others have done, which is how long something of theirs may wait for it. */
const LOOK_MS = 100;
const BEAT_MS = 2_000;
/** Its own lease is over for it before it is for others, who may learn of it late. */
const MARGIN_MS = 1_000;
/** How often it looks whether others have seen a change. */
const SEEN_MS = 10;
/** While it waits for others to take or give up shards, it looks at them this often. */
const SHARE_MS = 500;

/** What has changed since the version that a node works by. */
interface Changes {
  readonly version: number;
  /** The subscriptions, as JSON. */
  readonly changed: string;
}

/** What a node finds when it looks. `writes` and `receivers` are of others. */
interface LookRow extends Changes {
  readonly writes: number;
  readonly nowMs: number;
  /** How many nodes deliver, and how many are dead that nobody has noticed. */
  readonly nodes: number;
  readonly dead: number;
  readonly free: number;
  readonly isEnded: number;
  readonly receivers: number;
}

/** SQL of `Changes` since `$1`. */
const CHANGES = `version,
    (SELECT coalesce(json_agg(id), '[]') FROM ${SCHEMA}.changed_subscription WHERE version > $1) AS changed`;
const LOOK = `SELECT ${CHANGES}, extract(epoch FROM clock_timestamp()) * 1000 AS "nowMs",
    (SELECT coalesce(sum(writes), 0) FROM ${SCHEMA}.writer WHERE node <> $2) AS writes,
    (SELECT count(*) FROM ${SCHEMA}.node WHERE ${IS_SERVING}) AS nodes,
    (SELECT count(*) FROM ${SCHEMA}.node WHERE ended IS NULL AND until < clock_timestamp()) AS dead,
    (SELECT count(*) FROM ${SCHEMA}.shard WHERE node IS NULL) AS free,
    (SELECT count(*) FROM ${SCHEMA}.node WHERE ended IS NULL AND receives = 1 AND id <> $2) AS receivers,
    (SELECT count(*) FROM ${SCHEMA}.node WHERE id = $2 AND ended IS NOT NULL) AS "isEnded"
  FROM ${SCHEMA}.turn`;
const BEAT = `UPDATE ${SCHEMA}.node SET until = ${LEASE_END}, seen = $2 WHERE id = $1 AND ended IS NULL RETURNING id`;
const LEARN = `SELECT ${CHANGES} FROM ${SCHEMA}.turn`;
const WAITING_FOR = `SELECT count(*) AS nodes FROM ${SCHEMA}.node
  WHERE id <> $1 AND ${IS_LIVING} AND seen < $2`;

const RECEIVED = `SELECT id, body FROM ${SCHEMA}.change WHERE id > $1 AND node <> $2 ORDER BY id LIMIT 10000`;

export interface MembershipOptions {
  readonly setup: DatabaseSetup;
  readonly id: string;
  readonly serves: boolean;
  /** Does this node's part in sharing the shards out. */
  readonly share: () => Promise<Sharing>;
  /** Called after others have written something, or shards have come. */
  readonly onChange: (received?: readonly string[]) => void;
  /** Broadcasts changes; and says whether this node receives those of others, which answers the change after which it does. */
  readonly broadcast: (changes: readonly string[]) => Promise<unknown>;
  readonly receive: (isWanted: boolean) => Promise<number>;
  /** Called with the time of the database, and this process's monotonic clock before and after that was read. */
  readonly onTime: (databaseMs: number, askedMs: number, answeredMs: number) => void;
}

/**
 * What this process knows of its place among the nodes, by a connection of its own: it says that it is there, and looks at what
 * others have done. Where it cannot for as long as a lease lasts, it begins nothing any more, as others may do its work by then.
 */
export class Membership implements StoreNode {
  readonly others: OtherNodes = {
    receive: async (isWanted) => {
      const last = await this.#options.receive(isWanted);
      this.#receivedUpTo = isWanted ? last : undefined;
    },
    broadcast: (change) => {
      if (this.#hasReceivers) this.#outbox.push(change);
    },
  };
  readonly #options: MembershipOptions;
  readonly #connection: DatabaseConnection;
  readonly #ending = new AbortController();
  #running: Promise<void> | undefined;
  /** The version that this node works by, and the one of which others know that it does. */
  #version = -1;
  #acknowledged = -1;
  /** The subscriptions that were changed up to it, and that the engine has not taken. */
  readonly #changed = new Set<number>();
  #writes = -1;
  #nodes = 0;
  #shards: ReadonlySet<number> = new Set();
  #isLeaving = false;
  #hasReceivers = false;
  #outbox: object[] = [];
  /** The last change that was received; `undefined` while nobody needs them here. */
  #receivedUpTo: number | undefined;
  #validUntilMs = -Infinity;
  #beatAtMs = -Infinity;
  #sharedAtMs = -Infinity;
  #sharing: Promise<void> | undefined;
  #exchanging: Promise<void> | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
    // It asks for rows of three tables that have a few rows each. What takes longer than a lease is no answer.
    const statementTimeoutMs = CONNECT_TIMEOUT_MS;
    this.#connection = new DatabaseConnection({ ...options.setup, statementTimeoutMs });
  }

  /** Looks for the first time, and goes on with it until `end`. */
  async begin(): Promise<void> {
    await this.#look();
    // Nothing is leased yet.
    this.#changed.clear();
    this.#running = this.#run();
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
    await Promise.all([this.#sharing, this.#exchanging]);
    await this.#connection.close();
  }

  version(): number {
    this.#mustBeValid();
    return this.#version;
  }

  #mustBeValid(): void {
    if (performance.now() < this.#validUntilMs) return;
    const error = new EvregError(
      "unavailable",
      `This node has not reached the database for ${LEASE_SECONDS - MARGIN_MS / 1_000} s, so it does not know what others have changed.`,
      NOTHING_STORED,
    );
    error.retryAfterMs = 1_000;
    throw error;
  }

  takeChanged(): readonly number[] {
    this.#mustBeValid();
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  owns(subscription: number): boolean {
    return this.#shards.has(shardOf(subscription));
  }

  hasDuties(): boolean {
    return this.#shards.has(0);
  }

  async isAlike(setting: string): Promise<boolean> {
    const differing = await this.#connection.rows<{ setting: string }>(DIFFERING);
    return differing.every((one) => one.setting !== setting);
  }

  /**
   * Resolves once every other node works by this version, or does not work any more. After as long as a lease lasts one of both is
   * so: whoever renews its lease reads the version as well.
   */
  async seenByAll(version: number): Promise<void> {
    for (const endMs = performance.now() + LEASE_SECONDS * 1_000; performance.now() < endMs;) {
      try {
        const [row] = await this.#connection.rows<{ nodes: number }>(WAITING_FOR, [
          this.#options.id,
          version,
        ]);
        if (row!.nodes === 0) return;
        await wait(SEEN_MS);
      } catch {
        await wait(LOOK_MS);
      }
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending;
    while (!signal.aborted) {
      await wait(LOOK_MS, undefined, { signal, ref: false }).catch(() => undefined);
      // While the database is away, the trials of writes show when it is back.
      if (!signal.aborted) await this.#look().catch(() => undefined);
    }
  }

  async #look(): Promise<void> {
    const { id, serves, onChange, onTime } = this.#options;
    const askedMs = performance.now();
    const [look] = await this.#connection.rows<LookRow>(LOOK, [this.#version, id]);
    const answeredMs = performance.now();
    onTime(look!.nowMs, askedMs, answeredMs);
    const isChanged = look!.version !== this.#version || look!.writes !== this.#writes;
    this.#writes = look!.writes;
    this.#workBy(look!);
    this.#hasReceivers = look!.receivers > 0;
    if (isChanged) onChange();
    if (look!.version !== this.#acknowledged || answeredMs - this.#beatAtMs >= BEAT_MS) await this.#beat();
    // Its write waits for its turn, and the beats must not wait for it.
    this.#exchanging ??= this.#exchange()
      .catch(() => undefined)
      .finally(() => (this.#exchanging = undefined));
    const isOutOfShare = serves && (look!.nodes !== this.#nodes || look!.free > 0 || this.#isLeaving);
    const isDue = (serves && look!.dead > 0) || look!.isEnded > 0 || isOutOfShare;
    if (isDue && answeredMs - this.#sharedAtMs >= SHARE_MS) this.#sharing ??= this.#share(look!.nodes);
  }

  async #exchange(): Promise<void> {
    if (this.#outbox.length > 0) {
      const outbox = this.#outbox;
      this.#outbox = [];
      try {
        await this.#options.broadcast(outbox.map((change) => JSON.stringify(change)));
      } catch (error) {
        this.#outbox.unshift(...outbox);
        throw error;
      }
    }
    if (this.#receivedUpTo === undefined) return;
    const received = await this.#connection.rows<{ id: number; body: string }>(RECEIVED, [
      this.#receivedUpTo,
      this.#options.id,
    ]);
    const last = received.at(-1);
    if (last === undefined) return;
    this.#receivedUpTo = last.id;
    this.#options.onChange(received.map(({ body }) => body));
  }

  /** Says that this node is there, and by which version it works. */
  async #beat(): Promise<void> {
    const startedMs = performance.now();
    const wasValid = startedMs < this.#validUntilMs;
    const seen = this.#version;
    const [own] = await this.#connection.rows(BEAT, [this.#options.id, seen]);
    // Others have taken it for dead, and it has to take part again.
    if (own === undefined) return;
    this.#beatAtMs = startedMs;
    this.#acknowledged = seen;
    // Others have waited for it only from its beat on, and may have changed something meanwhile.
    const [changes] = await this.#connection.rows<Changes>(LEARN, [seen]);
    this.#workBy(changes!);
    const isChanged = this.#version !== seen;
    this.#validUntilMs = startedMs + LEASE_SECONDS * 1_000 - MARGIN_MS;
    if (isChanged || !wasValid) this.#options.onChange();
  }

  #workBy({ version, changed }: Changes): void {
    this.#version = version;
    for (const id of JSON.parse(changed) as number[]) this.#changed.add(id);
  }

  async #share(nodes: number): Promise<void> {
    try {
      const { shards, isLeaving, hasTaken } = await this.#options.share();
      this.#shards = new Set(shards);
      this.#isLeaving = isLeaving;
      this.#nodes = nodes;
      if (hasTaken) this.#options.onChange();
    } catch {
      // It is tried again after one of the next looks.
    }
    this.#sharedAtMs = performance.now();
    this.#sharing = undefined;
  }
}
