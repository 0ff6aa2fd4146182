import { setTimeout as wait } from "node:timers/promises";
import type { Fleet } from "./fleet.ts";
import { type Action, ACTIONS, KEYS } from "./scene.ts";

const TICK_MS = 20;
/** A request is made again after so long, then after twice as long each time, as publishers do. */
const AGAIN_MS = 200;
const LONGEST_AGAIN_MS = 2_000;
/** While so many events have no answer, no more are published but the few of actions with a rate of their own. */
const MAX_UNANSWERED = 4_000;
const MAX_BATCH = 60;
/** So many of one action are published in a row, so that each has its turn when there is much to make up for. */
const MAX_AT_ONCE = 100;
/** So many of single events have no key; they are published once, whatever is answered. */
const KEYLESS_PART = 0.1;

type Plan = { readonly part: number } | { readonly perSecond: number };

interface Item {
  readonly n: number;
  readonly action: Action;
  readonly payload: { readonly n: number; readonly key: string };
  readonly idempotency_key?: string;
}

/**
 * Publishes at a rate, to any node, and again with the same keys until it is answered. It makes up for what it could not
 * publish while nodes were away, as a publisher with a queue does.
 */
export class ChaosLoad {
  readonly #fleet: Fleet;
  readonly #perSecond: number;
  /** The rowids that were answered, by the number in the payload. */
  readonly acknowledged = new Map<number, number>();
  /** Numbers of events that were surely not stored, as was answered. */
  readonly refused = new Set<number>();
  readonly findings: string[] = [];
  sent = 0;
  #unanswered = 0;
  readonly #underWay = new Set<Promise<void>>();
  readonly #running: Promise<void>;
  #isStopped = false;

  constructor(fleet: Fleet, perSecond: number) {
    this.#fleet = fleet;
    this.#perSecond = perSecond;
    this.#running = this.#run();
  }

  get unanswered(): number {
    return this.#unanswered;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    const startedMs = performance.now();
    const published = new Map<Action, number>();
    while (!this.#isStopped) {
      await wait(TICK_MS);
      const seconds = (performance.now() - startedMs) / 1_000;
      for (const [action, plan] of Object.entries(ACTIONS) as [Action, Plan][]) {
        const isMuch = "part" in plan;
        const perSecond = isMuch ? plan.part * this.#perSecond : plan.perSecond;
        const before = published.get(action) ?? 0;
        const room = isMuch ? Math.max(0, MAX_UNANSWERED - this.#unanswered) : MAX_AT_ONCE;
        const count = Math.min(Math.floor(perSecond * seconds) - before, room, MAX_AT_ONCE);
        published.set(action, before + count);
        this.#publish(action, count);
      }
    }
  }

  #publish(action: Action, count: number): void {
    for (let left = count; left > 0;) {
      const size = Math.random() < 0.3 ? 1 : Math.min(left, 1 + Math.floor(Math.random() * MAX_BATCH));
      left -= size;
      const hasKey = size > 1 || Math.random() > KEYLESS_PART;
      const items = Array.from({ length: size }, () => this.#item(action, hasKey));
      this.#unanswered += size;
      const sending = size === 1 ? this.#sendOne(items[0]!) : this.#sendBatch(items);
      const one = sending.finally(() => {
        this.#underWay.delete(one);
        this.#unanswered -= size;
      });
      this.#underWay.add(one);
    }
  }

  #item(action: Action, hasKey: boolean): Item {
    const n = (this.sent += 1);
    const payload = { n, key: `k${Math.floor(Math.random() * KEYS)}` };
    return { n, action, payload, ...(hasKey ? { idempotency_key: `n-${n}` } : {}) };
  }

  async #sendOne({ n, ...event }: Item): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      const { status, body } = await this.#fleet.ask(this.#fleet.anyMember(), "POST", "/v1/events", event);
      if (status === 201 || status === 200) {
        this.acknowledged.set(n, (body as { data: { rowid: number } }).data.rowid);
        return;
      }
      if (event.idempotency_key === undefined) {
        const { details } = (body ?? {}) as { details?: { stored?: boolean } };
        if (details?.stored === false) this.refused.add(n);
        return;
      }
      this.#checkRefusal(status, body);
      await again(tries);
    }
  }

  async #sendBatch(items: readonly Item[]): Promise<void> {
    const events = items.map(({ n: _n, ...event }) => event);
    for (let tries = 0; ; tries += 1) {
      const { status, body } = await this.#fleet.ask(this.#fleet.anyMember(), "POST", "/v1/events/batch", {
        events,
      });
      if (status === 201) {
        const { data } = body as { data: { rowid: number }[] };
        for (const [place, { n }] of items.entries()) this.acknowledged.set(n, data[place]!.rowid);
        return;
      }
      this.#checkRefusal(status, body);
      await again(tries);
    }
  }

  #checkRefusal(status: number, body: unknown): void {
    if (status === 0 || status === 503 || status === 429 || status === 500) return;
    // A batch of which nothing was stored is answered with 422, whatever the reason.
    const { errors = [] } = (body ?? {}) as { errors?: readonly { code: number }[] };
    if (errors.length > 0 && errors.every(({ code }) => code === 503)) return;
    if (this.findings.length < 20)
      this.findings.push(`publishing: ${status} ${JSON.stringify(body).slice(0, 400)}`);
  }
}

async function again(tries: number): Promise<void> {
  await wait(Math.min(LONGEST_AGAIN_MS, AGAIN_MS * 2 ** tries));
}
