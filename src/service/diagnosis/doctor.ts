import { type HandlerPolicy, handlerRefusal } from "../../domain/handler-url.ts";
import {
  ATTENTION_LIMITS,
  type Finding,
  type FindingsMeta,
  fine,
  type Health,
  problem,
  warning,
} from "../../domain/operations.ts";
import { patternsOf } from "../../domain/names.ts";
import { isLeft, type Subscription } from "../../domain/subscription.ts";
import type { Token } from "../../domain/token.ts";
import { toIso } from "../../runtime/clock.ts";
import type { Backlog } from "../../store/queue.ts";
import type { ServiceContext } from "../context.ts";
import { allSubscriptions } from "../subscriptions.ts";
import { type BrokenSchema, brokenSchemas } from "./broken-schemas.ts";

/** What a service runs on. */
export interface Environment {
  /** Of the machine and the data folder; reads nothing from the store. */
  readonly findings: readonly Finding[];
  /** How far the clock was set since the process began. */
  readonly clockShiftMs: number;
  /** Whether it is a server, whose engine must run, or a command that has the folder for a moment. */
  readonly serves: boolean;
  readonly encrypts: boolean;
  /** Whether the first token is in a file of the data folder. */
  readonly hasTokenFile: boolean;
  /** Whether requests need no token. */
  readonly isOpen: boolean;
}

export async function diagnose(
  { store, clock, tokens, delivery, actions }: ServiceContext,
  inspect: () => Environment,
  health: Health,
): Promise<{ data: readonly Finding[]; meta: FindingsMeta }> {
  await tokens.flush();
  const nowMs = clock.now();
  const [allTokens, subscriptions, backlog, newest, broken, attention] = await Promise.all([
    store.tokens.list(),
    allSubscriptions(store.catalog, {}),
    store.queue.backlog(nowMs),
    store.events.list({ order: "desc", limit: 1, page: 1 }),
    brokenSchemas(store.catalog, actions),
    store.queue.attention({ nowMs, limit: ATTENTION_LIMITS.listMax }),
  ]);
  const pauses = attention.items.filter(({ reason, missed }) => reason === "paused" && (missed ?? 0) > 0);
  const environment = inspect();
  const data = [
    ...(environment.serves ? [serverFinding(health)] : []),
    ...environment.findings,
    ...findingsOf({
      ...environment,
      ...delivery,
      tokens: allTokens,
      subscriptions,
      backlog,
      damagedEvents: store.files?.damagedEvents() ?? [],
      brokenSchemas: broken,
      missingSince: new Map(pauses.map(({ subscription_id: id, since }) => [id, since])),
      newestEvent: newest.events[0]?.timestamped,
      nowMs,
    }),
  ];
  return { data, meta: { time: toIso(nowMs) } };
}

function serverFinding({ status, reason, version, engine }: Health): Finding {
  if (status === "ok") return fine("server", `evreg ${version} stores and delivers.`);
  return problem(
    "server",
    `evreg ${version} does not do its work: ${reason ?? "it does not say why"}`,
    engine === "stopped"
      ? "Its log has the cause; fix that, and start it again."
      : "Its log has the cause. Fix that; the server tries again by itself, every second or so, and needs no restart.",
  );
}

/** What is checked, apart from the machine. */
export interface DoctorInput extends HandlerPolicy, Omit<Environment, "findings"> {
  readonly tokens: readonly Token[];
  readonly subscriptions: readonly Subscription[];
  readonly backlog: Backlog;
  /** Those found since the start; only `doctor --deep` reads all. */
  readonly damagedEvents: readonly number[];
  readonly brokenSchemas: readonly BrokenSchema[];
  /** Subscriptions that have missed events since they were paused, with that time where it is known. */
  readonly missingSince: ReadonlyMap<number, string | null>;
  /** When it was published; `undefined` when there is none. */
  readonly newestEvent: string | undefined;
  readonly nowMs: number;
}

const DAY_MS = 24 * 60 * 60_000;
const SOON_MS = 14 * DAY_MS;
const LONG_FAILING_MS = 60 * 60_000;
const LATE_MS = 5 * 60_000;
const CLOCK_TOLERANCE_MS = 5_000;
const MAX_NAMED = 3;

export function findingsOf(input: DoctorInput): readonly Finding[] {
  const findings = [
    clockFinding(input),
    encryptionFinding(input),
    tokenFinding(input),
    handlerFinding(input),
    orderFinding(input.subscriptions),
    backlogFinding(input),
    damagedEventFinding(input.damagedEvents),
    brokenSchemaFinding(input.brokenSchemas),
  ];
  return findings.filter((finding) => finding !== undefined);
}

function clockFinding({ clockShiftMs, newestEvent, nowMs }: DoctorInput): Finding {
  const remedy = "Let a time service set the clock: signatures and retries of deliveries depend on it.";
  if (newestEvent !== undefined && Date.parse(newestEvent) > nowMs + CLOCK_TOLERANCE_MS) {
    const found = `The clock says ${toIso(nowMs)}, and the newest event is of ${newestEvent}: one of them is wrong. What waited for a time was moved with the clock.`;
    return problem("clock", found, remedy);
  }
  if (Math.abs(clockShiftMs) > CLOCK_TOLERANCE_MS) {
    const by = `${Math.round(Math.abs(clockShiftMs) / 1_000)} s ${clockShiftMs > 0 ? "ahead" : "back"}`;
    const moved = clockShiftMs > 0 ? "" : " What waits was moved with it.";
    return warning("clock", `The clock was set ${by} since the process began.${moved}`, remedy);
  }
  return fine("clock", `The clock says ${toIso(nowMs)} and runs evenly.`);
}

function encryptionFinding({ encrypts }: DoctorInput): Finding {
  if (encrypts) return fine("encryption", "Secrets of subscriptions are encrypted in the data file.");
  return warning(
    "encryption",
    "Secrets of subscriptions are in the data file, and in backups of it, as they are.",
    "Set EVREG_ENCRYPTION_KEY_FILE to a file with a key, as `openssl rand -base64 32` makes one, and start again.",
  );
}

const SHORT_LIVED_MS = 24 * 60 * 60_000;

/** Made for a day at most, as for a browser: nobody waits for another. */
function isShortLived({ expires_at: at, timestamped }: Token): boolean {
  return at !== null && Date.parse(at) - Date.parse(timestamped) <= SHORT_LIVED_MS;
}

function tokenFinding({ tokens: all, isOpen, serves, hasTokenFile, nowMs }: DoctorInput): Finding {
  const check = "tokens";
  const inMs = ({ expires_at: at }: Token): number => (at === null ? Infinity : Date.parse(at) - nowMs);
  const valid = all.filter((token) => inMs(token) > 0);
  const soon = valid.filter((token) => inMs(token) <= SOON_MS && !isShortLived(token));
  if (soon.length > 0) {
    const list = named(soon.map(({ name, expires_at: at }) => `${name} (${at})`));
    return warning(
      check,
      `${count(soon.length, "token expires", "tokens expire")} within 14 days: ${list}.`,
      "Make another with `evreg tokens create`, hand it over, and revoke the old one.",
    );
  }
  if (isOpen) return fine(check, "None is needed: anybody who reaches the server may do everything.");
  if (all.length === 0 && !serves) {
    return fine(check, "There is none yet: a server that needs one makes the first one at its start.");
  }
  const managing = valid.filter(({ scopes }) => scopes.includes("admin"));
  const how = "on the data folder, with the server stopped: `evreg tokens create NAME --scope admin`.";
  if (managing.length === 0) {
    return warning(
      check,
      "No token has the scope admin, so nobody can manage tokens over HTTP.",
      `Make one ${how}`,
    );
  }
  if (!hasTokenFile && managing.every(({ last_used_at: used }) => used === null)) {
    return warning(
      check,
      "No token with the scope admin was ever used, and the data folder has no file `token` with one.",
      `If nobody has one, make another ${how}`,
    );
  }
  const expired = all.length - valid.length;
  const old = expired === 0 ? "" : `; ${expired} that expired can be revoked`;
  return fine(
    check,
    `${count(valid.length, "token is", "tokens are")} valid, none ends within 14 days${old}.`,
  );
}

function handlerFinding({ subscriptions, nowMs, missingSince, ...allowed }: DoctorInput): Finding {
  const check = "handlers";
  const deactivated = subscriptions.filter((one) => !one.active && one.disabled_reason !== null);
  const failing = subscriptions.filter((one) => isFailing(one, nowMs));
  const isLong = failing.some(({ failing_since: since }) => nowMs - Date.parse(since!) > LONG_FAILING_MS);
  const first = deactivated[0] ?? failing[0];
  const id = first?.rowid;
  const again =
    deactivated.length === 0 ? "" : ` \`evreg subscriptions update ${id} --active\` makes it active again.`;
  const fix =
    first?.mode === "pull"
      ? "fix its consumer"
      : `fix the handler, or name another with \`evreg subscriptions update ${id} --handler URL\``;
  const remedy = `See why with \`evreg subscriptions attempts ${id}\`; ${fix}.${again}`;
  if (deactivated.length > 0) {
    const others =
      failing.length === 0 ? "" : `, and ${count(failing.length, "handler fails", "handlers fail")}`;
    return problem(
      check,
      `${count(deactivated.length, "subscription was", "subscriptions were")} deactivated: ${named(deactivated.map(nameOf))}${others}.`,
      remedy,
    );
  }
  if (failing.length > 0) {
    const since = failing.map((one) => `${nameOf(one)} since ${one.failing_since}`);
    const found = `${failingText(failing)}: ${named(since)}.`;
    const refusals = failing.flatMap((one) => {
      const why = one.handler === null ? undefined : handlerRefusal(one.handler, allowed);
      return why === undefined ? [] : [` The handler of ${nameOf(one)}: ${why}.`];
    });
    const whole = found + (refusals[0] ?? "");
    const isRefusable = failing.some(({ mode }) => mode === "push");
    const advice = !isRefusable
      ? remedy
      : `${remedy} address_refused says that the host has an address which delivery.allowNetworks of the configuration would have to open, or that it is http: where delivery.allowHttp is not set.`;
    return isLong ? problem(check, whole, advice) : warning(check, whole, advice);
  }
  return pauseFinding(subscriptions, missingSince);
}

/** Pauses are intended, unless they leave nobody to send an action's events to. */
function pauseFinding(
  subscriptions: readonly Subscription[],
  missingSince: DoctorInput["missingSince"],
): Finding {
  const check = "handlers";
  if (subscriptions.length === 0) {
    return fine(check, "There are no subscriptions: events are stored, and sent to nobody.");
  }
  const served = new Set(subscriptions.filter((one) => one.active).map(({ action }) => action));
  const paused = subscriptions.filter((one) => !one.active);
  const silent = paused.filter(
    ({ action }) => !served.has(action) && !patternsOf(action).some((pattern) => served.has(pattern)),
  );
  const actions = new Set(silent.map(({ action }) => action));
  if (silent.length > 0) {
    const id = silent[0]!.rowid;
    const since = missingSince.get(id) ?? null;
    const missed =
      since === null
        ? ""
        : `; what was missed can be sent then with \`evreg subscriptions replay ${id} --from ${since} --status missed\``;
    const all = paused.length === subscriptions.length ? "All subscriptions are" : "These subscriptions are";
    return warning(
      check,
      `${all} paused: ${named(silent.map(nameOf))}. New events of ${named([...actions])} are sent to nobody.`,
      `Unless it is meant, go on with \`evreg subscriptions update ${id} --active\`${missed}.`,
    );
  }
  const others = paused.length === 0 ? "" : `; ${count(paused.length, "more is", "more are")} paused`;
  const active = subscriptions.length - paused.length;
  return fine(
    check,
    `${count(active, "active subscription", "active subscriptions")}, none of them failing${others}.`,
  );
}

function orderFinding(subscriptions: readonly Subscription[]): Finding | undefined {
  const blocked = subscriptions.filter((one) => one.active && one.blocked_by !== null);
  const by = blocked.map((one) => `${nameOf(one)} by delivery ${one.blocked_by}`);
  const first = blocked[0]?.blocked_by;
  if (first === undefined) return undefined;
  return warning(
    "order",
    `${count(blocked.length, "ordered subscription is", "ordered subscriptions are")} blocked: ${named(by)}.`,
    `See why with \`evreg deliveries get ${first}\`. evreg keeps trying it: fix the handler, and send it now with \`evreg deliveries retry ${first}\`, or go past it with \`evreg deliveries skip ${first}\`.`,
  );
}

function damagedEventFinding(events: readonly number[]): Finding | undefined {
  if (events.length === 0) return undefined;
  return problem(
    "events",
    `${count(events.length, "event is", "events are")} damaged in the data file: ${named(events.map(String))}. Their payloads are not those that were published, and are neither shown nor sent.`,
    "Restore a backup from before the damage with `evreg restore`; `evreg doctor --deep` reads all events. Look at the disk and the memory of the machine, too.",
  );
}

function brokenSchemaFinding(broken: readonly BrokenSchema[]): Finding | undefined {
  const [first] = broken;
  if (first === undefined) return undefined;
  return problem(
    "schemas",
    `${count(broken.length, "action has a schema that is", "actions have schemas that are")} not valid, so nothing can be published to them: ${broken.map(({ action }) => action).join(", ")}. Of ${first.action}: ${first.why}`,
    `Give each a whole schema again with \`evreg actions update ${first.action} --schema FILE\`: earlier versions stored a number beyond 1e308, such as 1e400, as null.`,
  );
}

function failingText(failing: readonly Subscription[]): string {
  const pulls = failing.filter(({ mode }) => mode === "pull").length;
  const pushes = failing.length - pulls;
  const handlers = count(pushes, "handler fails or cannot be reached", "handlers fail or cannot be reached");
  const consumers = count(
    pulls,
    "pull subscription's consumers fail or let leases run out",
    "pull subscriptions' consumers fail or let leases run out",
  );
  return [...(pushes > 0 ? [handlers] : []), ...(pulls > 0 ? [consumers] : [])].join(", and ");
}

function isFailing(subscription: Subscription, nowMs: number): boolean {
  const { active, failing_since: since } = subscription;
  return active && since !== null && !isLeft(subscription, nowMs);
}

function nameOf({ rowid, application, subscription }: Subscription): string {
  return `${rowid} (${application}/${subscription})`;
}

function backlogFinding({ backlog: counts, subscriptions, nowMs }: DoctorInput): Finding {
  const { due, busy, delivering, waiting, blocked, held } = counts;
  const found = `${due.deliveries} deliveries are due, ${busy.deliveries} behind others of their subscriptions, ${delivering.deliveries} under way, ${waiting.deliveries} wait for their time, ${blocked.deliveries} behind one that blocks, ${held.deliveries} are held.`;
  if (due.sinceMs === undefined || nowMs - due.sinceMs <= LATE_MS) {
    const behind = waiting.deliveries + blocked.deliveries;
    const failing = subscriptions.filter((one) => isFailing(one, nowMs));
    if (failing.length === 0 || behind === 0) return fine("backlog", found);
    const only = failing.length === 1 ? ` --subscription ${failing[0]!.rowid}` : "";
    return warning(
      "backlog",
      `${count(behind, "delivery waits", "deliveries wait")} while handlers fail. ${found}`,
      `Fix the handlers: waiting deliveries are then sent without further help, or at once with \`evreg deliveries retry --status waiting${only}\`. Send those that failed for good again with \`evreg deliveries retry --status failed${only}\`.`,
    );
  }
  return warning(
    "backlog",
    `${found} The first has been due since ${toIso(due.sinceMs)}.`,
    "A server must run to deliver; where one does, its handlers are slower than what is published: raise delivery.maxInFlight, or make them faster.",
  );
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

function named(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return more > 0 ? `${names.slice(0, MAX_NAMED).join(", ")} and ${more} more` : names.join(", ");
}
