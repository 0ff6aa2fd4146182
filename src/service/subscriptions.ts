import type { WarningMeta } from "../domain/action.ts";
import { ATTEMPT_LIMITS, ATTEMPT_QUERY, withoutRefusal } from "../domain/delivery.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { checkHandlerUrl } from "../domain/handler-url.ts";
import { checkActionPattern, checkLabel, isPattern, matches } from "../domain/names.ts";
import { NEW_CLAIM, type NewClaim, PULL_LIMITS, PULL_RESULTS, type PullResults } from "../domain/pull.ts";
import { checkSettings, settingsIn, type SubscriptionSettings } from "../domain/subscription-settings.ts";
import {
  type Bearer,
  checkBearerToken,
  checkForMode,
  type ConsumersMeta,
  NEW_SUBSCRIPTION,
  type NewSubscription,
  SECRET_ROTATION,
  type SecretRotation,
  type Subscription,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
  type SubscriptionMode,
  type SubscriptionQuery,
  type SubscriptionUpdate,
} from "../domain/subscription.ts";
import { SUBSCRIPTION_LIMITS } from "../model/subscription.ts";
import { defaultRetries, retryDefaults } from "../domain/retry.ts";
import type { Answer, SubscriptionsPort } from "../evreg.ts";
import type { Random } from "../runtime/clock.ts";
import type {
  BearerSetting,
  CatalogStore,
  SubscriptionPatch,
  SubscriptionSelection,
} from "../store/catalog.ts";
import type { Access } from "./auth.ts";
import type { Background, ServiceContext } from "./context.ts";
import {
  allOf,
  checkId,
  checkQuery,
  existing,
  finder,
  missingAction,
  nonConforming,
  omitUndefined,
  pagesOf,
  readBody,
} from "./requests.ts";
import type { NewEvent } from "../domain/event.ts";
import type { HandlerTest } from "../domain/webhook.ts";
import { checkNewEvent } from "./publisher.ts";

/** Read at once: most are small, and a filter may have 64 KiB. */
const READ_SUBSCRIPTIONS = 25;

function pagesOfCatalog(
  catalog: CatalogStore,
  selection: Omit<SubscriptionSelection, "limit" | "after">,
): AsyncIterable<readonly Subscription[]> {
  return pagesOf(READ_SUBSCRIPTIONS, (last: Subscription | undefined) =>
    catalog.listSubscriptions(omitUndefined({ ...selection, limit: READ_SUBSCRIPTIONS, after: last?.rowid })),
  );
}

export async function* subscriptionPages(
  { store, clock }: Pick<ServiceContext, "store" | "clock">,
  access: Access,
  query: SubscriptionQuery,
): AsyncGenerator<readonly Subscription[], void, void> {
  const applications = access.readable(query.application);
  const { action, active, name } = checkQuery(SUBSCRIPTION_QUERY, query);
  const selection = omitUndefined<SubscriptionSelection>({ action, active, name, applications });
  for await (const page of pagesOfCatalog(store.catalog, selection)) {
    yield page.map((subscription) => shownAt(clock.now(), subscription));
  }
}

/** Leaves out a previous secret that has ended. */
function shownAt(nowMs: number, subscription: Subscription): Subscription {
  const until = subscription.previous_secret_until;
  if (until === null || Date.parse(until) > nowMs) return subscription;
  return { ...subscription, previous_secret_until: null };
}

export function subscriptionsPort(context: ServiceContext, access: Access): SubscriptionsPort {
  const { store, clock, random, delivery, schemaChecks, background } = context;
  const { readable, writable } = finder(access, "subscription", (id: number) =>
    store.catalog.findSubscription(checkId(id)),
  );
  const updateChecks = {
    action: checkActionPattern,
    handler: (field: string, value: string) => checkHandlerUrl(field, value, delivery),
    bearer_token: checkBearerToken,
  };
  const checks = { application: checkLabel, subscription: checkLabel, ...updateChecks };

  /**
   * One of mode `pull` whose deliveries the caller may take.
   * @param alsoDeleted finds one as well that was deleted while consumers had deliveries of it: what they have ends as usual
   */
  async function pullable(id: number, alsoDeleted = false): Promise<Subscription> {
    const subscription = await listenable(context, access, id, alsoDeleted);
    if (subscription.mode === "pull") return subscription;
    const message = "is of a subscription of mode push, which sends its deliveries to its handler";
    throw invalidField("id", message, id);
  }

  /**
   * Subscribing hands over an action's events, so it takes the right to read them, or to write where they belong; to listen
   * is neither. A pattern comes to match the actions of any application.
   */
  async function checkSubscribable(name: string): Promise<void> {
    if (isPattern(name)) {
      if (!access.allows("write")) access.require("read", undefined, name);
      return;
    }
    const owner = (await store.catalog.findAction(name))?.application;
    if (owner !== undefined && (access.allows("read", owner) || access.allows("write", owner))) return;
    throw await missingAction(store.catalog, access, name, "action");
  }

  /**
   * Subscriptions of one name share their secret, which the answer to their creation has: a caller that only listens must
   * not learn a handler's.
   */
  async function mustShareNoHandler(application: string, subscription: string): Promise<void> {
    if (access.allows("write", application)) return;
    const named = await allOf(pagesOfCatalog(store.catalog, { applications: [application], subscription }));
    if (named.some(({ mode }) => mode === "push")) access.require("write", application);
  }

  /** Checks a filter as the schema of an action is checked. */
  async function filterWarnings(
    { filter }: Partial<SubscriptionSettings>,
    action: string,
    signal: AbortSignal | undefined,
  ): Promise<{ readonly meta?: WarningMeta }> {
    if (filter === undefined || filter === null) return {};
    const filteredAction = isPattern(action) ? undefined : await store.catalog.findAction(action);
    const filtered =
      filteredAction !== undefined && access.allows("read", filteredAction.application)
        ? filteredAction
        : undefined;
    const warnings = await schemaChecks.warnings("filter", filter, access.caller, signal, filtered);
    return { meta: { warnings } };
  }

  /** Leaves out an overlap that has ended. */
  const shown = (subscription: Subscription): Subscription => shownAt(clock.now(), subscription);

  function answered(subscription: Subscription): Answer<Subscription, ConsumersMeta> {
    const { engine } = background;
    const data = shown(subscription);
    if (data.mode !== "pull" || engine?.state() !== "running") return { data };
    return { data, meta: { consumers: engine.pulls.waitingFor(data.rowid) } };
  }

  return {
    async list(query = {}) {
      return { data: await allOf(subscriptionPages(context, access, query)) };
    },
    async create(input, signal) {
      requireChanging(access);
      const body = readBody<NewSubscription>(NEW_SUBSCRIPTION, input, checks);
      const { application, subscription, action, mode = "push" } = body;
      const scope = scopeFor(mode);
      access.requireGiven(scope, application);
      await checkSubscribable(action);
      await mustShareNoHandler(application, subscription);
      if (mode === "push" && body.handler === undefined) throw invalidField("handler", "is required");
      checkForMode(mode, body);
      const { handler = null } = body;
      const { active = true, max_retries: maxRetries = defaultRetries(body, retryDefaults(delivery)) } = body;
      const bearer = bearerSetting(body) ?? { kind: "secret" };
      const settings = settingsOf(body);
      const warned = await filterWarnings(settings, action, signal);
      const secret = mintSecret(random);
      const names = { application, subscription, action, handler };
      const record = { ...names, maxRetries, active, secret, bearer, settings };
      const created = await store.catalog.createSubscription(record, clock.now(), access.actor);
      // Others of its name may have had one before, which it shares.
      const sendable = await store.queue.findSendable(created.rowid);
      return { data: { ...created, secret: sendable?.secret ?? secret }, ...warned };
    },
    async get(id) {
      if (!access.allowsSome("listen")) return answered(await readable(id));
      const subscription = await store.catalog.findSubscription(checkId(id));
      // Who takes its deliveries may know it.
      const mayListen = subscription?.mode === "pull" && access.allows("listen", subscription.application);
      return answered(mayListen ? subscription : await readable(id));
    },
    async update(id, input, signal) {
      const before = await writable(id);
      const body = readBody<SubscriptionUpdate>(SUBSCRIPTION_UPDATE, input, updateChecks);
      if (Object.keys(body).length === 0) return { data: shown(before) };
      const { mode = before.mode, max_retries: maxRetries, active, action } = body;
      if (mode !== before.mode) {
        throw invalidField("mode", "cannot be changed; create another subscription of that mode", mode);
      }
      checkForMode(mode, body);
      const handler = body.handler ?? undefined;
      const settings = settingsOf(body, before);
      const warned = await filterWarnings(settings, action ?? before.action, signal);
      if (action !== undefined && action !== before.action) await checkSubscribable(action);
      const bearer = bearerSetting(body, before.bearer);
      const patch = { handler, maxRetries, active, action, bearer, settings };
      const updated = await store.catalog.updateSubscription(
        id,
        omitUndefined<SubscriptionPatch>(patch),
        clock.now(),
        access.actor,
      );
      const after = existing(updated, "subscription", id);
      background.engine?.wake(after);
      if (after.active) background.replays?.wake();
      return { data: shown(after), ...warned };
    },
    async rotateSecret(id, input = {}) {
      await writable(id);
      const body = readBody<SecretRotation>(SECRET_ROTATION, input);
      const { overlap_ms: overlapMs = SUBSCRIPTION_LIMITS.overlapDefaultMs } = body;
      const secret = mintSecret(random);
      const rotated = await store.catalog.rotateSecret(id, { secret, overlapMs }, clock.now(), access.actor);
      const after = existing(rotated, "subscription", id);
      const { application, subscription, mode } = after;
      const named = await allOf(pagesOfCatalog(store.catalog, { applications: [application], subscription }));
      const all = named.filter((each) => each.mode === mode);
      for (const each of all) background.engine?.wake(each);
      return { data: { ...after, secret }, meta: { rotated: all.length } };
    },
    async test(id, input) {
      return { data: await testHandler(context, access, await writable(id), input) };
    },
    async claim(id, input = {}, signal) {
      const { rowid: subscription } = await pullable(id);
      const { leaseDefaultMs } = PULL_LIMITS;
      const body = readBody<NewClaim>(NEW_CLAIM, input, { consumer: checkLabel });
      const usual = { max: 1, wait_ms: 0, lease_ms: leaseDefaultMs, consumer: access.principal.name };
      const pulls = pullsOf(background);
      const data = await pulls.claim({ ...usual, ...body, subscription, caller: access.caller }, signal);
      if (data.length === 0 || (await context.tokens.holds(access.principal))) return { data };
      const released = data.map(({ lease }) => ({ lease, outcome: "released" }) as const);
      await pulls.finish(await pullable(id, true), released);
      throw new EvregError("unauthorized", "The token was revoked or has expired while this waited.");
    },
    async finish(id, input) {
      const from = await pullable(id, true);
      const { results } = readBody<PullResults>(PULL_RESULTS, input);
      return { data: await pullsOf(background).finish(from, results) };
    },
    async attempts(id, query = {}) {
      await readable(id);
      const { limit = ATTEMPT_LIMITS.listDefault } = checkQuery(ATTEMPT_QUERY, query);
      const attempts = await store.queue.attempts(id, limit);
      return { data: access.allows("admin") ? attempts : attempts.map(withoutRefusal) };
    },
    async delete(id) {
      await listenable(context, access, id);
      const deleted = existing(
        await store.catalog.deleteSubscription(id, clock.now(), access.actor),
        "subscription",
        id,
      );
      background.engine?.wake(deleted);
      // No more are added from now on.
      return { data: shown(deleted), meta: { cancelled: await store.queue.countPending(id) } };
    },
  };
}

/** A token that may only listen changes nothing but pull subscriptions. */
function requireChanging(access: Access): void {
  if (!access.allowsSome("listen")) access.requireSome("write");
}

function scopeFor(mode: SubscriptionMode): "listen" | "write" {
  return mode === "pull" ? "listen" : "write";
}

/**
 * One of mode `pull` that the caller may listen to, or any that it may change.
 * @param alsoDeleted finds one as well that was deleted
 */
export async function listenable(
  { store }: Pick<ServiceContext, "store">,
  access: Access,
  id: number,
  alsoDeleted = false,
): Promise<Subscription> {
  requireChanging(access);
  const found = await store.catalog.findSubscription(checkId(id), alsoDeleted);
  const subscription = existing(found, "subscription", id);
  access.require(scopeFor(subscription.mode), subscription.application);
  return subscription;
}

function pullsOf({ engine }: Background): NonNullable<Background["engine"]>["pulls"] {
  if (engine !== undefined) return engine.pulls;
  throw new EvregError("unavailable", "Only a running server gives deliveries to consumers: evreg serve.");
}

/** The bearer that a body sets. To set `own` again changes nothing. */
function bearerSetting(
  body: { readonly bearer?: Bearer; readonly bearer_token?: string },
  before?: Bearer,
): BearerSetting | undefined {
  const { bearer, bearer_token: token } = body;
  if (token !== undefined) {
    if (bearer === undefined || bearer === "own") return { kind: "own", token };
    throw invalidField("bearer", "must be own, or be left out, with a bearer_token", bearer);
  }
  if (bearer === undefined || (bearer === "own" && before === "own")) return undefined;
  if (bearer === "own") throw invalidField("bearer_token", "must be given for a bearer of its own");
  return { kind: bearer };
}

function settingsOf(
  body: Partial<SubscriptionSettings>,
  before?: SubscriptionSettings,
): Partial<SubscriptionSettings> {
  const settings = settingsIn(body);
  checkSettings(settings, before);
  return settings;
}

/** Makes a secret in the form of Standard Webhooks, which libraries of receivers read. */
function mintSecret(random: Random): string {
  return `whsec_${Buffer.from(random.bytes(32)).toString("base64")}`;
}

/** Does what `SubscriptionsPort.test` says, for a subscription that the caller may change. */
async function testHandler(
  context: ServiceContext,
  access: Access,
  tested: Subscription,
  input: NewEvent,
): Promise<HandlerTest> {
  const { store, actions, payloads, limits, background } = context;
  const { rowid: id } = tested;
  checkNewEvent(input, limits.payloadBytes);
  if (input.idempotency_key !== undefined) {
    throw invalidField("idempotency_key", "must be left out, as a test is stored nowhere");
  }
  if (tested.mode === "pull") {
    const message = `Subscription ${id} is of mode pull: the subscription has no handler to test, as consumers claim its deliveries.`;
    throw new EvregError("invalid", message, { field: "mode", message, value: tested.mode });
  }
  const { action } = input;
  if (!matches(tested.action, action)) {
    throw invalidField("action", `must be ${tested.action}, as the subscription hears no other`, action);
  }
  const loaded = actions.get(action) ?? (await actions.load(action));
  if (loaded === undefined) throw await missingAction(store.catalog, access, action, "action");
  const failure = await payloads.failureOf(loaded, input.payload, { caller: access.caller });
  if (failure !== undefined) {
    if (access.allows("read", loaded.application)) throw nonConforming(input, failure);
    // What breaks the schema tells what is in it.
    throw invalidField("payload", `does not conform to the schema of ${action}`);
  }
  const sendable = existing(await store.queue.findSendable(id), "subscription", id);
  if (background.engine === undefined) {
    throw new EvregError("unavailable", "No server runs on this data, and only a server sends to handlers.");
  }
  const { payload } = input;
  const result = await background.engine.test({
    subscription: sendable,
    action,
    payload: payload.bytes,
    caller: access.caller,
  });
  // A refusal shows what names stand for inside the operator's network.
  return access.allows("admin") ? result : { ...result, refusal: null };
}
