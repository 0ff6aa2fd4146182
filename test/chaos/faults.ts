import { setTimeout as wait } from "node:timers/promises";
import type { Cluster } from "../support/postgres.ts";
import type { Fleet, Member } from "./fleet.ts";
import type { Links } from "./links.ts";

const KILL_EVERY_MS = 7_000;
const STOP_EVERY_MS = 30_000;
/** Longer than a lease. */
const STOP_MS = 14_000;
const RESTART_EVERY_MS = 40_000;
const LINK_EVERY_MS = 9_000;
const LINK_MAX_MS = 16_000;
const TERMINATE_EVERY_MS = 11_000;
const SAMPLE_MS = 250;

type FaultKind = "kill" | "stop" | "restart" | "link" | "terminate";

export interface DoneFault {
  readonly kind: FaultKind;
  readonly what: string;
  readonly atMs: number;
  endMs: number;
  /** The process that it happened to; the database without one. */
  readonly pid?: number | undefined;
  /** What that one had under way; see `leasesOf`. */
  readonly inFlight: number;
}

/** Who had which shards at a time: by process, as a node that is started again is another one. */
interface Sample {
  readonly atMs: number;
  readonly pidOf: readonly number[];
}

const OWNERS = `SELECT s.id, coalesce((n.owner::json ->> 'pid')::int, 0) AS pid
  FROM evreg.shard AS s LEFT JOIN evreg.node AS n ON n.id = s.node ORDER BY s.id`;
const LEASES = `SELECT count(*)::int AS leases FROM evreg.lease AS l JOIN evreg.delivery AS d ON d.rowid = l.delivery_id
  JOIN evreg.shard AS s ON s.id = d.subscription_id % (SELECT count(*) FROM evreg.shard)
  JOIN evreg.node AS n ON n.id = s.node WHERE (n.owner::json ->> 'pid')::int = `;

export interface FaultParts {
  readonly fleet: Fleet;
  readonly links: Links;
  readonly cluster: Cluster;
  readonly database: string;
  readonly random: () => number;
}

/** Does one fault after the other, of all kinds side by side, until it is ended, and mends all that lasts. */
export class Faults {
  readonly #parts: FaultParts;
  readonly done: DoneFault[] = [];
  readonly owners: Sample[] = [];
  readonly #ending = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #sampling: Promise<void> = Promise.resolve();
  #isSampling = true;

  constructor(parts: FaultParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#sampling = this.#sample();
    this.#running = Promise.all([
      this.#repeat(KILL_EVERY_MS, () => this.#kill()),
      this.#repeat(STOP_EVERY_MS, () => this.#stop()),
      this.#repeat(RESTART_EVERY_MS, () => this.#restart()),
      this.#repeat(LINK_EVERY_MS, () => this.#link()),
      this.#repeat(TERMINATE_EVERY_MS, () => this.#terminate()),
    ]);
  }

  /** No fault begins any more; those that last are over. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  async endSampling(): Promise<void> {
    this.#isSampling = false;
    await this.#sampling;
  }

  /** Which process had a shard at a time. */
  ownerAt(shard: number, atMs: number): number | undefined {
    const before = this.owners.findLast((sample) => sample.atMs <= atMs);
    return before?.pidOf[shard];
  }

  async #repeat(everyMs: number, once: () => Promise<void>): Promise<void> {
    const { signal } = this.#ending;
    for (let nextMs = performance.now() + everyMs; ; nextMs = Math.max(nextMs + everyMs, performance.now())) {
      await wait(Math.max(0, nextMs - performance.now()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await once();
    }
  }

  #wait(ms: number): Promise<void> {
    return wait(ms, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }

  #someMember(isFit: (member: Member) => boolean): Member | undefined {
    const fit = this.#parts.fleet.members.filter(isFit);
    return fit[Math.floor(this.#parts.random() * fit.length)];
  }

  async #note(kind: FaultKind, what: string, member?: Member): Promise<DoneFault> {
    const pid = member?.child?.pid;
    const inFlight = pid === undefined ? 0 : await this.#leasesOf(pid);
    const fault = { kind, what, pid, inFlight, atMs: Date.now(), endMs: Date.now() };
    this.done.push(fault);
    return fault;
  }

  async #leasesOf(pid: number): Promise<number> {
    const { cluster, database } = this.#parts;
    const counted = await cluster.query<{ leases: number }>(LEASES + pid, database).catch(() => []);
    return counted[0]?.leases ?? 0;
  }

  async #kill(): Promise<void> {
    const member = this.#someMember(({ isReady, isStopped }) => isReady && !isStopped);
    if (member === undefined) return;
    await this.#note("kill", `kill -9 ${member.name}`, member);
    this.#parts.fleet.kill(member);
  }

  async #stop(): Promise<void> {
    const member = this.#someMember(({ isReady }) => isReady);
    if (member === undefined) return;
    const fault = await this.#note("stop", `SIGSTOP ${member.name}`, member);
    this.#parts.fleet.stop(member);
    await this.#wait(STOP_MS);
    this.#parts.fleet.goOn(member);
    fault.endMs = Date.now();
  }

  async #restart(): Promise<void> {
    const fault = await this.#note("restart", "the database crashes");
    await this.#parts.cluster.crash();
    await this.#wait(this.#parts.random() * 2_000);
    await this.#parts.cluster.start();
    fault.endMs = Date.now();
  }

  async #link(): Promise<void> {
    const { fleet, links, random } = this.#parts;
    const link = Math.floor(random() * fleet.members.length);
    const member = fleet.members[link]!;
    const state = random() < 0.7 ? "stalled" : "cut";
    const drops = random() < 0.5;
    const lastsMs = 1_000 + random() * (LINK_MAX_MS - 1_000);
    const fault = await this.#note(
      "link",
      `${state} link of ${member.name} for ${Math.round(lastsMs)} ms`,
      member,
    );
    links.become({ link, state });
    await this.#wait(lastsMs);
    links.become({ link, state: "up", drops });
    fault.endMs = Date.now();
  }

  /** Ends some of the database's processes, as an administrator does. */
  async #terminate(): Promise<void> {
    const { cluster, database, random } = this.#parts;
    await this.#note("terminate", "connections are terminated");
    const text = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evreg' AND pid % 3 = ${Math.floor(random() * 3)}`;
    await cluster.query(text, database).catch(() => undefined);
  }

  async #sample(): Promise<void> {
    const { cluster, database } = this.#parts;
    while (this.#isSampling) {
      const rows = await cluster.query<{ pid: number }>(OWNERS, database).catch(() => undefined);
      if (rows !== undefined) this.owners.push({ atMs: Date.now(), pidOf: rows.map(({ pid }) => pid) });
      await wait(SAMPLE_MS);
    }
  }
}
