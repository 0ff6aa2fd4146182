import { setTimeout as wait } from "node:timers/promises";
import type { Fleet } from "./fleet.ts";
import type { ChaosReceiver } from "./receiver.ts";
import type { Sub } from "./scene.ts";

// Who changes and reads things on the way, and notes when what was answered.

const CHANGE_MS = 30_000;
/** What nobody waits for any more is done or undone by then. */
const LATE_MS = 25_000;

/** No attempt of a subscription begins in this time: from the answer to a pause to the request that ends it. */
export interface Pause {
  readonly sub: Sub;
  readonly answeredMs: number;
  readonly endedMs: number;
}

/** No attempt goes to a handler of this version or an older one after this time. */
export interface Move {
  readonly sub: Sub;
  readonly before: number;
  readonly answeredMs: number;
}

const isGone = ({ status }: { status: number }): boolean => status === 200 || status === 404;

export class Actors {
  readonly #fleet: Fleet;
  readonly #receiver: ChaosReceiver;
  readonly #subs: readonly Sub[];
  readonly #ending = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly pauses: Pause[] = [];
  readonly moves: Move[] = [];
  /** The rowids of all events that a reader got who goes on after the last one, in the order in which they came. */
  readonly followed: number[] = [];
  revoked = 0;
  revokedAccepted = 0;
  replays = 0;

  constructor(fleet: Fleet, receiver: ChaosReceiver, subs: readonly Sub[]) {
    this.#fleet = fleet;
    this.#receiver = receiver;
    this.#subs = subs;
  }

  start(): void {
    for (const sub of this.#of("paused")) this.#running.push(this.#pause(sub));
    for (const sub of this.#of("moved")) this.#running.push(this.#move(sub));
    for (const sub of this.#of("replayed")) this.#running.push(this.#replay(sub));
    this.#running.push(this.#revoke(), this.#follow());
  }

  /** Ends what changes things; the reader goes on until it has the event with this rowid. */
  async end(lastEvent: () => Promise<number>): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#running);
    for (const sub of this.#of("paused")) await this.#change(sub, { active: true });
    const last = await lastEvent();
    while ((this.followed.at(-1) ?? 0) < last) await this.#followOne();
  }

  #of(kind: Sub["kind"]): readonly Sub[] {
    return this.#subs.filter((sub) => sub.kind === kind);
  }

  get #isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  async #wait(leastMs: number, mostMs: number): Promise<void> {
    const forMs = leastMs + Math.random() * (mostMs - leastMs);
    await wait(forMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }

  /** @returns when it was answered */
  async #change({ rowid }: Sub, body: object): Promise<number> {
    let tries = 0;
    await this.#fleet.askUntil(
      ({ status }) => {
        tries += 1;
        return status === 200;
      },
      "PUT",
      `/v1/subscriptions/${rowid}`,
      body,
      {},
      CHANGE_MS,
    );
    const answeredMs = Date.now();
    // One that was given up may still be done: then the next change has to come after it.
    if (tries > 1) await this.#wait(LATE_MS, LATE_MS);
    return answeredMs;
  }

  async #pause(sub: Sub): Promise<void> {
    while (!this.#isEnding) {
      await this.#wait(2_000, 6_000);
      const answeredMs = await this.#change(sub, { active: false });
      await this.#wait(1_000, 3_000);
      this.pauses.push({ sub, answeredMs, endedMs: Date.now() });
      await this.#change(sub, { active: true });
    }
  }

  async #move(sub: Sub): Promise<void> {
    for (let version = 1; !this.#isEnding; version += 1) {
      await this.#wait(2_000, 6_000);
      const answeredMs = await this.#change(sub, { handler: this.#receiver.handler(sub.name, version) });
      this.moves.push({ sub, before: version, answeredMs });
    }
  }

  async #replay(sub: Sub): Promise<void> {
    while (!this.#isEnding) {
      await this.#wait(10_000, 20_000);
      const now = Date.now();
      const [from, to] = [now - 20_000, now - 1_000].map((ms) => new Date(ms).toISOString());
      // 409: the one before runs still, or this one was begun without an answer.
      const { status } = await this.#fleet.askUntil(
        (answer) => answer.status === 201 || answer.status === 409,
        "POST",
        `/v1/subscriptions/${sub.rowid}/replay`,
        { from, to, status: "all" },
      );
      if (status === 201) this.replays += 1;
    }
  }

  async #revoke(): Promise<void> {
    const checks: Promise<void>[] = [];
    while (!this.#isEnding) {
      const made = await this.#fleet.askUntil(({ status }) => status === 201, "POST", "/v1/tokens", {
        name: "short",
        scopes: ["read"],
      });
      const { rowid, token } = (made.body as { data: { rowid: number; token: string } }).data;
      const headers = { authorization: `Bearer ${token}` };
      const use = (): Promise<readonly number[]> =>
        Promise.all(
          this.#fleet.members.map(async (member) => {
            return (await this.#fleet.ask(member, "GET", "/v1/actions", undefined, headers)).status;
          }),
        );
      await use();
      await this.#fleet.askUntil(isGone, "DELETE", `/v1/tokens/${rowid}`, undefined, {}, CHANGE_MS);
      this.revoked += 1;
      const check = async (): Promise<void> => {
        for (let turn = 0; turn < 20 && !this.#isEnding; turn += 1) {
          const accepted = (await use()).filter((status) => status < 400 && status > 0).length;
          this.revokedAccepted += accepted;
          await this.#wait(100 * turn, 100 * turn);
        }
      };
      checks.push(check());
      await this.#wait(1_000, 3_000);
    }
    await Promise.all(checks);
  }

  async #follow(): Promise<void> {
    while (!this.#isEnding) if (!(await this.#followOne())) await this.#wait(50, 50);
  }

  /** @returns whether there may be more */
  async #followOne(): Promise<boolean> {
    const after = this.followed.at(-1) ?? 0;
    const member = this.#fleet.anyMember();
    const { status, body } = await this.#fleet.ask(
      member,
      "GET",
      `/v1/events?order=asc&after=${after}&limit=500&payloads=false`,
    );
    if (status !== 200) {
      await wait(50);
      return true;
    }
    const { data } = body as { data: readonly { rowid: number }[] };
    for (const { rowid } of data) this.followed.push(rowid);
    return data.length === 500;
  }
}
