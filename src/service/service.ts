import { hostname } from "node:os";
import { asEvregError, EvregError } from "../domain/error.ts";
import type { Action, ActionRevision, RevisionQuery } from "../domain/action.ts";
import { AUDIT_LIMITS, AUDIT_QUERY, type AuditQuery } from "../domain/audit.ts";
import type { Delivery } from "../domain/delivery.ts";
import type { EventQuery } from "../domain/event.ts";
import { attentionText } from "../domain/words/attention.ts";
import { ATTENTION_LIMITS, ATTENTION_QUERY, type Health, type Node } from "../domain/operations.ts";
import type { Subscription, SubscriptionQuery } from "../domain/subscription.ts";
import { retryDefaults } from "../domain/retry.ts";
import type { Principal } from "../domain/token.ts";
import type { Evreg } from "../evreg.ts";
import { toIso } from "../runtime/clock.ts";
import type { OffThreadValidator } from "../schema/validate/compile.ts";
import type { AuditSelection } from "../store/history.ts";
import type { AttentionSelection } from "../store/queue.ts";
import { SHARDS } from "../store/rules/shards.ts";
import type { StoreCondition } from "../store/store.ts";
import { actionPages, actionsPort, revisionPages } from "./actions.ts";
import { Access } from "./auth.ts";
import { ActionCache } from "./compiled-actions.ts";
import { PayloadValidator } from "./payload-checks.ts";
import type { ServiceContext, ServiceParts } from "./context.ts";
import { deliveriesPort, replaysPort } from "./deliveries.ts";
import { diagnose, type ServiceEnvironment } from "./doctor.ts";
import {
  eventDeliveryPages,
  type EventPart,
  type EventPartOptions,
  eventParts,
  eventReads,
} from "./events.ts";
import { Publisher } from "./publisher.ts";
import { SchemaChecks } from "./schema-checks.ts";
import { Feed } from "./feed.ts";
import { viewOf } from "./stream-pages.ts";
import { checkQuery, omitUndefined, timeRange } from "./requests.ts";
import { readStats } from "./stats.ts";
import { StoredEvents } from "./stored-events.ts";
import { subscriptionPages, subscriptionsPort } from "./subscriptions.ts";
import { bootstrapToken, TokenCache, tokensPort } from "./tokens.ts";

export interface ServiceOptions extends ServiceParts {
  readonly version: string;
  /** Names this process, anew at each start. */
  readonly instance: string;
  /** The instance that `/health` answers: several processes behind one address have the same. */
  readonly server: string;
  readonly offThread: OffThreadValidator;
  /** All metrics as text. */
  readonly metrics: () => Promise<string>;
  /** Looked at when somebody asks the doctor. */
  readonly environment: () => ServiceEnvironment;
}

/** The port with its long lists part by part too, so that a server need not hold them whole. */
export interface ServicePort extends Evreg {
  readonly parts: {
    actions(query: { application?: string }): AsyncIterable<readonly Action[]>;
    revisions(name: string, query: RevisionQuery): AsyncIterable<readonly ActionRevision[]>;
    subscriptions(query: SubscriptionQuery): AsyncIterable<readonly Subscription[]>;
    /** One page, cut into parts. */
    events(query: EventQuery, options: EventPartOptions): AsyncIterable<EventPart>;
    /** Where one event went. */
    eventDeliveries(id: number): AsyncIterable<readonly Delivery[]>;
  };
}

/** evreg on a store. All checks of scopes and of input are made here, whoever calls. */
export interface Service {
  /** The port for one principal, and the address that it asks from for changes to be kept with it. Its `close` does nothing: the store is closed by whoever opened it. */
  as(principal: Principal, address?: string): ServicePort;
  /** Says who a token stands for, and whether it still holds. */
  readonly tokens: Pick<TokenCache, "authenticate" | "holds" | "refresh" | "onRevoked">;
  /**
   * Makes an admin token named `bootstrap` when the store holds no token at all, and returns whether it did.
   * @param keep puts it where its owner finds it, before it is stored; when it throws, none is
   * @param requested the token to take instead of a new one, in a token's form
   */
  bootstrapToken(keep: (token: string) => void, requested?: string): Promise<boolean>;
  /** Reads nothing from the store and needs no scope. */
  health(): Health;
  /** Is told what happens that the service does not do itself. */
  readonly feed: Pick<Feed, "recorded" | "ended" | "received" | "streamsOpen">;
}

export function createService(options: ServiceOptions): Service {
  const { version, instance, server, offThread, metrics, environment, ...shared } = options;
  const { store, clock, logger, background } = shared;
  const startedMs = clock.now();
  const retries = retryDefaults(shared.delivery);
  const tokens = new TokenCache(store, clock, logger);
  const payloads = new PayloadValidator(offThread);
  const schemaChecks = new SchemaChecks();
  const feed = new Feed({ store, clock, instance });
  const context: ServiceContext = {
    ...shared,
    feed,
    tokens,
    payloads,
    actions: new ActionCache(store),
    storedEvents: new StoredEvents({ events: store.events, clock, payloads, schemaChecks }),
    schemaChecks,
  };
  const soleNode = (): Node => ({
    id: instance,
    host: hostname(),
    pid: process.pid,
    version,
    status: background.engine === undefined ? "visiting" : "serving",
    started_at: toIso(startedMs),
    seen_at: toIso(clock.now()),
    shards: SHARDS,
    leaving: 0,
  });
  const health = (): Health =>
    healthOf(store.health(), background.engine?.state() ?? "stopped", { version, instance: server });
  return {
    as(principal, address) {
      const access = new Access(principal, address);
      const { publish, publishBatch } = new Publisher(context, access);
      const { name, scopes, expires_at = null } = principal;
      const port: Evreg = guarded({
        actions: actionsPort(context, access),
        events: { publish, publishBatch, ...eventReads(context, access) },
        subscriptions: subscriptionsPort(context, access),
        deliveries: deliveriesPort(context, access),
        replays: replaysPort(context, access),
        tokens: tokensPort(context, access),
        audit: {
          async list(query: AuditQuery = {}) {
            // It tells of all applications.
            access.require("admin");
            const { limit = AUDIT_LIMITS.listDefault, after } = checkQuery(AUDIT_QUERY, query);
            const selection = omitUndefined<AuditSelection>({ ...timeRange(query), limit, after });
            return { data: await store.audit.list(selection) };
          },
        },
        stats: (query) => readStats(context, access, query),
        health: () => Promise.resolve({ data: health() }),
        whoami: () => Promise.resolve({ data: { expires_at, name, scopes, data_id: store.dataId, retries } }),
        async metrics() {
          access.require("read");
          return metrics();
        },
        async stream(query = {}, { signal } = {}) {
          return feed.open(viewOf(access, query), query.since, access.caller, signal);
        },
        async attention(query = {}) {
          const applications = access.readable(query.application);
          const { limit = ATTENTION_LIMITS.listDefault } = checkQuery(ATTENTION_QUERY, query);
          const nowMs = clock.now();
          const selection = omitUndefined<AttentionSelection>({ nowMs, applications, limit });
          const { items, total, subscriptions } = await store.queue.attention(selection);
          const data = items.map((item) => Object.assign(item, { found: attentionText(item) }));
          return { data, meta: { total, subscriptions } };
        },
        async nodes() {
          access.require("admin");
          const data = await (store.database?.nodes() ?? [soleNode()]);
          return { data, meta: { shards: SHARDS } };
        },
        async doctor() {
          access.require("admin");
          return diagnose(context, environment, health());
        },
        async backup(signal) {
          access.require("admin");
          if (store.backup !== undefined) return store.backup(signal);
          throw new EvregError(
            "conflict",
            "The data of this server are in a database that is not evreg's own: make a backup with its tools.",
          );
        },
        close: () => Promise.resolve(),
      });
      return {
        ...port,
        parts: {
          actions: (query) => actionPages(context, access, query),
          revisions: (action, query) => revisionPages(context, access, action, query),
          subscriptions: (query) => subscriptionPages(context, access, query),
          events: (query, reading) => eventParts(context, access, query, reading),
          eventDeliveries: (id) => eventDeliveryPages(context, access, id),
        },
      };
    },
    tokens,
    bootstrapToken: (keep, requested) => bootstrapToken(context, keep, requested),
    health,
    feed,
  };
}

/** Wraps the methods so that they reject only with `EvregError`s, or with the reason of a signal that has ended them. */
function guarded<T extends Readonly<Record<keyof T, object>>>(port: T): T {
  const members = Object.entries<object>(port).map(([name, member]) => {
    return [name, typeof member === "function" ? guardedMethod(member as Method) : guarded(member)];
  });
  return Object.fromEntries(members) as T;
}

type Method = (...args: never[]) => Promise<unknown>;

function guardedMethod(method: Method): (...args: unknown[]) => Promise<unknown> {
  return (...args) =>
    method(...(args as never[])).catch((error: unknown) => {
      for (const arg of args) if (arg instanceof AbortSignal) arg.throwIfAborted();
      throw asEvregError(error);
    });
}

/** Whether the service does its work: commits, and delivers. */
function healthOf(
  condition: StoreCondition,
  engine: Health["engine"],
  identity: { readonly version: string; readonly instance: string },
): Health {
  const store = condition.status === "ok" ? "ok" : "unavailable";
  if (store === "ok" && engine === "running") return { status: "ok", store, engine, ...identity };
  let reason = "Deliveries are not being sent: the delivery engine is stopped.";
  if (engine === "failing")
    reason = "Deliveries are not being sent: those that are due cannot be read; the log has the cause.";
  if (store !== "ok") reason = condition.reason ?? "The store cannot commit.";
  return { status: "unavailable", reason, store, engine, ...identity };
}
