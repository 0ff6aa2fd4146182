import { isPattern, matches, patternsOf } from "../domain/names.ts";
import { nearest } from "../domain/words/nearest.ts";
import { tlsReasonText } from "../domain/words/attempts.ts";
import type { Deprecation } from "../domain/action.ts";
import {
  type Attempt,
  type AttemptErrorCode,
  type Delivery,
  type DeliveryWithAttempts,
  isFinal,
} from "../domain/delivery.ts";
import { ATTENTION_LIMITS } from "../domain/operations.ts";
import type { Replay } from "../domain/replay.ts";
import { retriesText } from "../domain/retry.ts";
import type { HandlerTest } from "../domain/webhook.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { Evreg } from "../evreg.ts";
import { note } from "./io/output.ts";
import { counted, escapeControl } from "./io/text.ts";
import { nextCommand, serveCommand } from "./target/next-command.ts";

/** What the errors of attempts without an answer mean, and what to look at. */
const ERROR_MEANINGS: Readonly<Record<AttemptErrorCode, string>> = {
  timeout: "It took longer than the subscription's --timeout, else delivery.timeoutMs.",
  dns_failed: "The host's name could not be looked up.",
  address_refused:
    "The host has an address that deliveries may not go to (delivery.allowNetworks), or it is http: where that is not allowed (delivery.allowHttp).",
  connection_refused: "Nothing listens there.",
  connection_reset: "The connection ended before the answer.",
  tls_failed: "The certificate is not trusted, or no TLS was agreed on.",
  protocol_error: "What came was no HTTP answer.",
  interrupted: "The server ended during the attempt. It counts for nothing and is made again.",
  secret_unreadable: "The subscription's secret is encrypted with a key that the server was not given.",
  event_damaged:
    "The event is damaged in the data file, and was not sent. Restore a backup from before the damage.",
  network_error: "Any other failure of the network.",
  consumer_failed: "The consumer of a pull subscription reported a failure; its attempt has the reason.",
};

/** Why an attempt got no answer, and what helps; `undefined` for one that has one. */
function errorNote({
  error_code: code,
  tls_reason: tls,
  refusal,
}: Partial<Pick<Attempt, "error_code" | "tls_reason" | "refusal">>): string | undefined {
  if (refusal) return `address_refused: ${escapeControl(refusal)}`;
  if (code === "tls_failed" && tls) return `tls_failed: ${tlsReasonText(tls)}.`;
  // A newer server may know more of them.
  return code && Object.hasOwn(ERROR_MEANINGS, code) ? `${code}: ${ERROR_MEANINGS[code]}` : undefined;
}

/** Notes why a delivery is stuck, where its subscription shows it. For a person, on stderr. */
export async function noteStuckReason(evreg: Evreg, delivery: DeliveryWithAttempts): Promise<void> {
  const error = errorNote(delivery.attempts.at(-1) ?? {});
  if (error !== undefined) note(error);
  if (isFinal(delivery.status)) return;
  const subscription = await readSubscription(evreg, delivery.subscription_id);
  const isForConsumer = delivery.status === "pending" && subscription?.mode === "pull";
  if (isForConsumer && delivery.next_attempt_at !== null)
    note(`Delivery ${delivery.rowid} waits for a consumer to claim it.`);
  const block = subscription === undefined ? undefined : blockBefore(delivery, subscription);
  if (block !== undefined) note(block);
}

/** A token may be allowed to publish, to write or to read deliveries, and not to read this. */
async function readSubscription(evreg: Evreg, id: number): Promise<Subscription | undefined> {
  return (await evreg.subscriptions.get(id).catch(() => undefined))?.data;
}

/** One that others of its order are before. A delivery that a person retries is sent before all of them. */
function blockBefore(
  { rowid, status, next_attempt_at: next }: Delivery,
  { rowid: id, ordered }: Subscription,
): string | undefined {
  if (ordered === false || next !== null || (status !== "pending" && status !== "waiting")) return undefined;
  return `Delivery ${rowid} waits behind another one of its subscription ${id}, which keeps an order. See what fails: ${nextCommand(`deliveries list --subscription ${id} --status waiting`)}`;
}

/** Says that a replay runs on no further, as its subscription is paused. */
export async function notePaused(evreg: Evreg, { status, subscription_id: id }: Replay): Promise<void> {
  if (status !== "running" || (await readSubscription(evreg, id))?.active !== false) return;
  const resume = nextCommand(`subscriptions update ${id} --active`);
  note(`Subscription ${id} is paused: the replay waits until it is active again: ${resume}`);
}

/** Says that what was put into a folder without a server is safe there, and goes nowhere yet. */
export async function noteUndelivered(evreg: Evreg): Promise<void> {
  const health = await evreg.health().catch(() => undefined);
  if (health?.data.engine !== "stopped") return;
  note(`What is to be delivered waits for a server on this data folder: ${serveCommand()}`);
}

/** What to do after a handler was tried and did not accept. */
export function afterFailedTest(test: HandlerTest): string | undefined {
  const { response } = test;
  if (response === null) return errorNote(test);
  return `A handler must answer 200 to 299. See in its own log why it answered ${response.status_code}.`;
}

/** Says of a subscription whose last attempts failed, or that was deactivated for it, what to type next. */
export function noteFailing({
  rowid,
  mode,
  failing_since: since,
  disabled_reason: reason,
}: Subscription): void {
  if (since === null && reason === null) return;
  note(`See why: ${nextCommand(`subscriptions attempts ${rowid}`)}`);
  if (mode === "push") note(`Try its handler: ${nextCommand(`subscriptions test ${rowid}`)}`);
  if (reason !== null) note(`Once it is mended: ${nextCommand(`subscriptions update ${rowid} --active`)}`);
  else note(`Send at once what waits: ${nextCommand(`subscriptions replay ${rowid} --status waiting`)}`);
  note(`Send again what failed: ${nextCommand(`subscriptions replay ${rowid} --status failed`)}`);
}

/** The warning for a publisher of a deprecated action. */
export function deprecationNote({ action, since, successor }: Deprecation): string {
  const instead = successor === null ? "" : `; publish to ${successor} instead`;
  return `Warning: ${escapeControl(`${action} is deprecated since ${since}${instead}.`)}`;
}

/** Says of a pattern that no action matches so far that this is so, as it may be misspelt. */
export async function unmatchedNote(evreg: Evreg, pattern: string): Promise<string | undefined> {
  // A token may be allowed to write and not to read.
  const listed = isPattern(pattern) ? await evreg.actions.list().catch(() => undefined) : undefined;
  const names = listed?.data.map(({ action }) => action);
  if (names === undefined || names.some((name) => matches(pattern, name))) return undefined;
  const meant = nearest(pattern, names.flatMap(patternsOf));
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
  return `No action that may be read here matches ${pattern} yet; those that are made later will.${hint}`;
}

const BLOCKS =
  "What has used up its retries blocks those behind it and is tried until it is delivered or skipped (--on-exhausted).";

/**
 * Says when the last retry is, and where that is set. A failure is answered with the bare facts: the secret, which is
 * shown once, must not go down with it.
 */
export async function retriesNote(
  evreg: Evreg,
  { max_retries: retries, ...created }: Subscription,
): Promise<string> {
  const usual = await evreg.whoami().then(
    ({ data }) => data.retries,
    () => undefined,
  );
  const waitsMs = created.retry_schedule ?? usual?.retry_schedule ?? null;
  const what =
    retries === 0
      ? "What fails has no retries"
      : `What fails is tried again: ${retriesText(retries, waitsMs)}`;
  const sentence = `${what} (--max-retries, --retry-schedule; for all: delivery.retrySchedule).`;
  return created.on_exhausted === "block" ? `${sentence} ${BLOCKS}` : sentence;
}

/**
 * How many events a subscription has missed that is paused or deactivated, as a sentence with the command that sends them;
 * `undefined` where it has missed none, or where nobody knows.
 */
export async function missedNote(evreg: Evreg, id: number): Promise<string | undefined> {
  const subscription = await readSubscription(evreg, id);
  if (subscription === undefined || subscription.active) return undefined;
  const { application, timestamped, ordered } = subscription;
  const answer = await evreg
    .attention({ application, limit: ATTENTION_LIMITS.listMax })
    .catch(() => undefined);
  const item = answer?.data.find((one) => one.subscription_id === id && one.reason !== "failed");
  if (item === undefined || item.missed === null || item.missed === 0) return undefined;
  const replay = `subscriptions replay ${id} --from ${item.since ?? timestamped} --status missed`;
  const place = ordered === false ? "" : ", in its order behind what is sent by then";
  return `It has missed ${counted(item.missed, "event")}. Send what was missed${place}: ${nextCommand(replay)}`;
}
