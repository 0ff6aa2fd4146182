import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { DeliveryConfig } from "../../src/config/keys.ts";
import { Engine } from "../../src/delivery/engine.ts";
import type { EngineParts } from "../../src/delivery/parts.ts";
import type { DeliveryWithAttempts } from "../../src/domain/delivery.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { SubscriptionSettings } from "../../src/domain/subscription-settings.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { EngineCounts } from "../../src/metrics/counters.ts";
import { systemClock, WatchedClock } from "../../src/runtime/clock.ts";
import type { Logger } from "../../src/runtime/logger.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { SubscriptionPatch } from "../../src/store/catalog.ts";
import type { EventRecord } from "../../src/store/events.ts";
import type { DeliveryQueue } from "../../src/store/queue.ts";
import type { Store, StoreChange } from "../../src/store/store.ts";
import { KeptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { inNewFolder } from "../support/thread-pool.ts";
import { until } from "../support/until.ts";

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

/** A real store in a folder of its own, a clock that stands still, and what tests do with them. */
export class Bench {
  readonly clock: ManualClock;
  readonly log = new KeptLog();
  store!: Store;
  readonly #folder: string;
  readonly #engines: Engine[] = [];
  #names = 0;

  static async open(): Promise<Bench> {
    const bench = new Bench(await mkdtemp(join(tmpdir(), "evreg-delivery-")));
    await inNewFolder(() => bench.#openStore(new KeptLog()));
    return bench;
  }

  private constructor(folder: string) {
    this.#folder = folder;
    // Near the real time, as receivers check how old a signature is.
    this.clock = new ManualClock(Date.now());
  }

  /** Ends everything, lets the clock be set meanwhile, and opens the same folder again. */
  async restart(meanwhile: () => void): Promise<void> {
    await this.#end();
    meanwhile();
    await this.#openStore(this.log);
  }

  async #openStore(logger: Logger): Promise<void> {
    const started_at = new Date().toISOString();
    const owner = { pid: process.pid, command: "test", instance: "test", started_at };
    const onChange = ({ serviceEvents }: StoreChange): void => {
      if (serviceEvents !== undefined) this.wake();
    };
    const clock = { ...systemClock, now: () => this.clock.now() };
    this.store = await openLibsqlStore({ folder: this.#folder, owner, logger, clock, onChange });
  }

  async #end(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => engine.stop(0)));
    await this.store.close();
  }

  async close(): Promise<void> {
    await this.#end();
    await rm(this.#folder, { recursive: true, force: true });
  }

  engine(config: Partial<DeliveryConfig> = {}, parts: Partial<EngineParts> = {}): Engine {
    const clock = new WatchedClock(this.clock);
    const engine = new Engine({
      store: this.store.queue,
      node: this.store.node,
      clock,
      longChecks: new ValidationThread(this.clock),
      random: { bytes: (count) => new Uint8Array(count), fraction: () => 0.5 },
      logger: this.log,
      config: {
        timeoutMs: 10_000,
        maxInFlight: 64,
        maxInFlightPerSubscription: 32,
        disableAfter: 0,
        allowHttp: true,
        allowNetworks: ["127.0.0.0/8"],
        ...config,
      },
      ownPorts: [],
      counts: new EngineCounts(),
      version: "1.2.3",
      ...parts,
    });
    clock.watch((step) => engine.clockWasSet(step));
    this.#engines.push(engine);
    return engine;
  }

  /** An engine that runs. */
  started(...options: Parameters<Bench["engine"]>): Engine {
    const engine = this.engine(...options);
    engine.start();
    return engine;
  }

  /** Runs an engine that claims once, and resolves when what that brought has ended and is stored. */
  async once(config: Partial<DeliveryConfig> = {}, parts: Partial<EngineParts> = {}): Promise<void> {
    const port = parts.store ?? this.store.queue;
    const over = Promise.withResolvers<void>();
    let claimed: number | undefined;
    let ended = 0;
    const check = (): void => {
      if (claimed === ended) over.resolve();
    };
    let isAsked = false;
    const store = portWith(port, {
      async claim(request) {
        if (isAsked) return { claims: [], nextDueAtMs: undefined, limitedTiers: [] };
        isAsked = true;
        const answer = await port.claim(request);
        claimed = answer.claims.length;
        check();
        return answer;
      },
      async finish(results, nowMs, options) {
        const alone = results.map(({ nextLeaseMs: _next, ...result }) => result);
        const outcomes = await port.finish(alone, nowMs, options);
        ended += results.length;
        check();
        return outcomes;
      },
    });
    const engine = this.engine(config, { ...parts, store });
    engine.start();
    await over.promise;
    await engine.stop(0);
  }

  wake(): void {
    for (const engine of this.#engines) engine.wake();
  }

  /** A subscription to an action of its own, of mode pull without a handler. */
  async subscribe(
    handler: string | null,
    maxRetries = 5,
    settings: Partial<SubscriptionSettings> = {},
  ): Promise<Subscription> {
    this.#names += 1;
    const action = `test.${this.#names}`;
    await this.store.catalog.createAction({ action, application: "tests", schemata: {} }, this.clock.now());
    return this.store.catalog.createSubscription(
      {
        application: "tests",
        subscription: "hook",
        action,
        handler,
        maxRetries,
        active: true,
        secret: SECRET,
        settings,
      },
      this.clock.now(),
    );
  }

  /** Changes a subscription as others do: an engine does not know of it before it is woken with it. */
  async update({ rowid }: Subscription, patch: SubscriptionPatch): Promise<Subscription> {
    return (await this.store.catalog.updateSubscription(rowid, patch, this.clock.now()))!;
  }

  /** A subscription for which so many events were published. */
  async withEvents(count: number, ...options: Parameters<Bench["subscribe"]>): Promise<Subscription> {
    const subscription = await this.subscribe(...options);
    await this.publish(subscription, count);
    return subscription;
  }

  /** Publishes `count` events of a subscription's action; answers their rowids. */
  async publish(subscription: Subscription, count = 1, payload = '{"a":1}'): Promise<number[]> {
    const record = await this.recordOf(subscription, payload);
    const outcomes = await this.store.events.record(
      Array.from({ length: count }, () => record),
      this.clock.now(),
    );
    return outcomes.map((outcome) => (outcome.kind === "recorded" ? outcome.rowid : -1));
  }

  /** An event of a subscription's action, to be recorded. */
  async recordOf({ action }: Subscription, payload = '{"a":1}'): Promise<EventRecord> {
    const { rowid: actionId, revision } = (await this.store.catalog.findAction(action))!;
    return { actionId, revision, payload: Buffer.from(payload) };
  }

  /** Publishes one event as the service does: what the engine has capacity for is leased with it. Answers how many are. */
  async publishTo(engine: Engine, subscription: Subscription): Promise<number> {
    const record = await this.recordOf(subscription);
    const claim = engine.claimOf(subscription.action);
    const [outcome] = await this.store.events.record([record], this.clock.now(), { claim });
    const claims = outcome?.kind === "recorded" ? (outcome.claims ?? []) : [];
    if (claim !== undefined) engine.recorded(claim, claims);
    if (outcome?.kind === "recorded" && outcome.deliveries > claims.length) engine.wake();
    return claims.length;
  }

  /** Moves on in steps, with time for the store to answer what each step made the engine ask. */
  async advance(byMs: number, stepMs = 1_000): Promise<void> {
    for (let goneMs = 0; goneMs < byMs; goneMs += stepMs) {
      await this.clock.advance(Math.min(stepMs, byMs - goneMs));
      // Writes are answered in their order, and this one writes nothing.
      for (let answer = 0; answer < 3; answer += 1) await this.store.queue.extend([]);
    }
  }

  /** The only delivery of a subscription, with its attempts. */
  async delivery(subscription: Subscription): Promise<DeliveryWithAttempts> {
    const [found] = await this.store.queue.list({ subscription: subscription.rowid, limit: 1 });
    const delivery = found && (await this.store.queue.find(found.rowid));
    if (delivery === undefined) throw new Error("no delivery");
    return delivery;
  }

  async statuses(subscription: Subscription): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { status } of await this.store.queue.list({
      subscription: subscription.rowid,
      limit: 500,
    })) {
      counts[status] = (counts[status] ?? 0) + 1;
    }
    return counts;
  }

  async untilStatus(subscription: Subscription, status: string): Promise<DeliveryWithAttempts> {
    await until(
      `the delivery to be ${status}`,
      async () => (await this.delivery(subscription)).status === status,
    );
    return this.delivery(subscription);
  }

  async untilDelivered(subscription: Subscription, count: number): Promise<void> {
    await until(
      `${count} deliveries`,
      async () => (await this.statuses(subscription))["delivered"] === count,
    );
  }
}

interface BenchAndReceiver {
  readonly bench: Bench;
  readonly receiver: Receiver;
}

/** Opens a bench and a receiver before each test and closes them after it, the bench first. */
export function useBench(take: (opened: BenchAndReceiver) => void): void {
  let opened: BenchAndReceiver;
  beforeEach(async () => {
    opened = { bench: await Bench.open(), receiver: await startReceiver() };
    take(opened);
  });
  afterEach(async () => {
    await opened.bench.close();
    await opened.receiver.close();
  });
}

/** Has a receiver answer in its next turn, and counts the most requests it had at once. */
export function countConcurrent(receiver: Receiver): { readonly most: number } {
  const counted = { most: 0 };
  let underWay = 0;
  receiver.answer = () => {
    underWay += 1;
    counted.most = Math.max(counted.most, underWay);
    const after = new Promise<void>((resolve) => {
      setImmediate(() => {
        underWay -= 1;
        resolve();
      });
    });
    return { after };
  };
  return counted;
}

interface FailingQueue {
  readonly store: DeliveryQueue;
  isDown: boolean;
  /** How often it was asked. */
  asked: number;
}

/** The queue of a store that refuses such calls while `isDown`, as with a full disk. */
export function failing(queue: DeliveryQueue, method: "claim" | "finish"): FailingQueue {
  const call = queue[method].bind(queue) as (...args: unknown[]) => Promise<never>;
  const replaced = (...args: unknown[]): Promise<never> => {
    state.asked += 1;
    return state.isDown ? Promise.reject(new EvregError("unavailable", "The disk is full.")) : call(...args);
  };
  const state = { store: portWith(queue, { [method]: replaced }), isDown: true, asked: 0 };
  return state;
}

/** The queue of a store, and how many deliveries each claim from it has brought. */
export function countingClaims(queue: DeliveryQueue): { readonly store: DeliveryQueue; claims: number[] } {
  const counted = {
    claims: [] as number[],
    store: portWith(queue, {
      async claim(request) {
        const answer = await queue.claim(request);
        counted.claims.push(answer.claims.length);
        return answer;
      },
    }),
  };
  return counted;
}

/** A port of the store with some of its methods replaced: to count calls, or to let them fail as a full disk would. */
export function portWith<T extends object>(port: T, replaced: Partial<T>): T {
  return new Proxy(port, {
    get(target, name) {
      const found: unknown = Reflect.get(name in replaced ? replaced : target, name);
      return typeof found === "function" ? (found.bind(target) as unknown) : found;
    },
  });
}
