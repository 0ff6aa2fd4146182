import type { WarningMeta } from "../domain/action.ts";
import { invalidField } from "../domain/error.ts";
import { checkHandlerUrl } from "../domain/handler-url.ts";
import { checkActionName, checkLabel } from "../domain/names.ts";
import { checkExtraHeaders, settingsIn, type SubscriptionSettings } from "../domain/subscription-settings.ts";
import {
  type Bearer,
  checkBearerToken,
  NEW_SUBSCRIPTION,
  type NewSubscription,
  defaultRetries,
  SECRET_ROTATION,
  type SecretRotation,
  type Subscription,
  SUBSCRIPTION_LIMITS,
  SUBSCRIPTION_QUERY,
  SUBSCRIPTION_UPDATE,
  type SubscriptionUpdate,
} from "../domain/subscription.ts";
import type { SubscriptionsPort } from "../evreg.ts";
import type { Random } from "../runtime/clock.ts";
import type { BearerSetting, SubscriptionSelection } from "../store/catalog.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import {
  allPages,
  checkId,
  checkQuery,
  existing,
  notFound,
  omitUndefined,
  readable,
  readBody,
  writable,
} from "./requests.ts";
import { type TaskRunner, schemaWarnings } from "./schema-tasks.ts";

/** Read at once: most are small, and a filter may have 64 KiB. */
export const READ_SUBSCRIPTIONS = 25;

export function subscriptionsPort(context: ServiceContext, access: Access): SubscriptionsPort {
  const { store, clock, random, delivery, schemaTasks, background } = context;
  const checkHandler = (field: string, value: string): string => checkHandlerUrl(field, value, delivery);

  /**
   * Subscribing hands an action's events over, so it takes the right to read them, or to write where they belong: an
   * action outside both is as good as none.
   */
  async function checkSubscribable(name: string): Promise<void> {
    const action = await store.catalog.findAction(name);
    const open =
      action !== undefined &&
      (access.allows("read", action.application) || access.allows("write", action.application));
    if (!open) throw notFound("action", name, "action");
  }

  const find = (id: number): Promise<Subscription | undefined> => store.catalog.findSubscription(checkId(id));

  /** An overlap that has ended is none any more. */
  function shown(subscription: Subscription): Subscription {
    const until = subscription.previous_secret_until;
    if (until === null || Date.parse(until) > clock.now()) return subscription;
    return { ...subscription, previous_secret_until: null };
  }

  return {
    async list(query = {}) {
      const applications = access.readable();
      const { application, action, active } = checkQuery(SUBSCRIPTION_QUERY, query);
      const of = omitUndefined<SubscriptionSelection>({ application, action, active, applications });
      const found = await allPages(READ_SUBSCRIPTIONS, (last: Subscription | undefined) =>
        store.catalog.listSubscriptions({
          ...of,
          ...omitUndefined({ after: last?.rowid }),
          limit: READ_SUBSCRIPTIONS,
        }),
      );
      return { data: found.map(shown) };
    },
    async create(input, signal) {
      access.requireSome("write");
      const body = readBody(NEW_SUBSCRIPTION, input, {
        application: checkLabel,
        subscription: checkLabel,
        action: checkActionName,
        handler: checkHandler,
        bearer_token: checkBearerToken,
      }) as NewSubscription;
      access.require("write", body.application);
      await checkSubscribable(body.action);
      const { application, subscription, action, handler } = body;
      const { active = true, max_retries: maxRetries = defaultRetries(body) } = body;
      const secret = mintSecret(random);
      const bearer = bearerSetting(body) ?? { kind: "secret" };
      const settings = settingsOf(body);
      const warned = await filterWarnings(
        schemaTasks.runnerFor("change", access.principal, signal),
        settings,
      );
      const record = {
        application,
        subscription,
        action,
        handler,
        maxRetries,
        active,
        secret,
        bearer,
        settings,
      };
      return {
        data: { ...(await store.catalog.createSubscription(record, clock.now())), secret },
        ...warned,
      };
    },
    async get(id) {
      return { data: shown(await readable(access, "subscription", id, find)) };
    },
    async update(id, input, signal) {
      const before = await writable(access, "subscription", id, find);
      const body = readBody(SUBSCRIPTION_UPDATE, input, {
        action: checkActionName,
        handler: checkHandler,
        bearer_token: checkBearerToken,
      }) as SubscriptionUpdate;
      // Nothing to change is a change like any other that was made already.
      if (Object.keys(body).length === 0) return { data: shown(before) };
      const { handler, max_retries: maxRetries, active, action } = body;
      const settings = settingsOf(body, before);
      const warned = await filterWarnings(
        schemaTasks.runnerFor("change", access.principal, signal),
        settings,
      );
      if (action !== undefined && action !== before.action) await checkSubscribable(action);
      const patch = omitUndefined<Parameters<typeof store.catalog.updateSubscription>[1]>({
        handler,
        maxRetries,
        active,
        action,
        bearer: bearerSetting(body, before.bearer),
        settings,
      });
      const updated = await store.catalog.updateSubscription(id, patch, clock.now());
      const after = existing(updated, "subscription", id);
      background.engine?.wake(after);
      if (after.active) background.replays?.wake();
      return { data: shown(after), ...warned };
    },
    async rotateSecret(id, input = {}) {
      await writable(access, "subscription", id, find);
      const body = readBody(SECRET_ROTATION, input) as SecretRotation;
      const { overlap_ms: overlapMs = SUBSCRIPTION_LIMITS.overlapDefaultMs } = body;
      const secret = mintSecret(random);
      const rotated = await store.catalog.rotateSecret(id, { secret, overlapMs }, clock.now());
      const after = existing(rotated, "subscription", id);
      background.engine?.wake(after);
      return { data: { ...after, secret } };
    },
    async delete(id) {
      await writable(access, "subscription", id, find);
      const deleted = existing(await store.catalog.deleteSubscription(id, clock.now()), "subscription", id);
      background.engine?.wake(deleted);
      // Only now does none come to them any more.
      return { data: shown(deleted), meta: { cancelled: await store.queue.countPending(id) } };
    },
  };
}

/**
 * The bearer that a body sets, if it does.
 * @param before what it is now; setting that again changes nothing
 */
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

/**
 * The settings of a body.
 * @param before what they are now
 */
function settingsOf(
  body: Partial<SubscriptionSettings>,
  before?: SubscriptionSettings,
): Partial<SubscriptionSettings> {
  const settings = settingsIn(body);
  if ((settings.headers ?? null) !== null) checkExtraHeaders("headers", settings.headers!);
  const isOrdered = settings.ordered ?? before?.ordered ?? false;
  if (isOrdered || (settings.on_exhausted ?? null) === null) return settings;
  throw invalidField("on_exhausted", "is for subscriptions that are ordered only", settings.on_exhausted);
}

/** For a filter that is given; checked as the schema of an action is. */
async function filterWarnings(
  tasks: TaskRunner,
  { filter }: Partial<SubscriptionSettings>,
): Promise<{ readonly meta?: WarningMeta }> {
  if (filter === undefined || filter === null) return {};
  return { meta: { warnings: await schemaWarnings(tasks, "filter", filter) } };
}

/** In the form of Standard Webhooks, so that receivers can hand it to the libraries they have. */
function mintSecret(random: Random): string {
  return `whsec_${Buffer.from(random.bytes(32)).toString("base64")}`;
}
