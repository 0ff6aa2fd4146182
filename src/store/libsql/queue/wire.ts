import { LRUCache } from "lru-cache";
import type { AttemptErrorCode } from "../../../domain/delivery.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../../domain/subscription-settings.ts";
import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedEvent,
  ClaimedSubscription,
  ClaimRequest,
  Deactivated,
  FinishOutcome,
  NextStep,
  Taker,
} from "../../queue.ts";
import { OpenedSecrets, type StoredSecrets } from "../../secret-cipher.ts";
import type { RecordedLeases } from "../events/record-wire.ts";
import type { WithServiceEvents } from "../events/service-events.ts";
import { columns } from "../thread/columns.ts";
import { bytesAt } from "../thread/protocol.ts";
import { readableOr } from "../thread/stored-json.ts";
import { DELIVERY_STATE } from "./delivery-state.ts";

/** A request as it crosses the thread. */
export interface ClaimCall extends Omit<ClaimRequest, "quotas" | "takers"> {
  /** The numbers of `QUOTA` for each subscription. */
  readonly quotas: Float64Array;
  readonly takers: readonly (readonly [subscriptionId: number, taker: Taker])[] | undefined;
  /** Subscriptions that were found unreadable. */
  readonly excluded: readonly number[];
}

export const QUOTA = columns("id", "leased", "capacity", "tier");

/** The claim of one taker. */
export type TakerClaim = readonly [subscriptionId: number, claimId: number];

/** An answer as it crosses the thread: rows as JSON, which is cheaper to carry than as many objects. */
export interface ClaimReply extends Omit<ClaimAnswer, "claims"> {
  /** Of what evreg sends. */
  readonly claimId: number;
  /** Of what each taker has. */
  readonly takers: readonly TakerClaim[];
  /** `ClaimRow`s. */
  readonly rows: string;
  /** `SubscriptionRow`s. */
  readonly subscriptions: string;
  /** Where their payloads begin in the answer's bytes, each event's once, in the order of the rows. */
  readonly offset: number;
  /** Events of the rows whose payloads are damaged, and not among the bytes. */
  readonly damaged: readonly number[];
  /** Subscriptions that were left out, as their deliveries cannot be read. */
  readonly unreadable: readonly number[];
}

export const CLAIM = columns(
  "deliveryId",
  "attempt",
  "failures",
  "subscriptionId",
  "eventId",
  "payloadBytes",
  "timestampedMs",
  "action",
  "isLate",
);
export type ClaimRow = [
  deliveryId: number,
  attempt: number,
  failures: number,
  subscriptionId: number,
  eventId: number,
  payloadBytes: number,
  timestampedMs: number,
  action: string,
  isLate: 0 | 1,
];

export const SUBSCRIPTION = columns(
  "subscriptionId",
  "application",
  "name",
  "handler",
  "maxRetries",
  "secret",
  "previousSecret",
  "previousUntilMs",
  "bearer",
  "bearerToken",
  "settings",
);
type SubscriptionRow = readonly [
  subscriptionId: number,
  application: string,
  name: string,
  handler: string,
  maxRetries: number,
  secret: StoredSecrets["secret"],
  previousSecret: StoredSecrets["previousSecret"],
  previousUntilMs: StoredSecrets["previousUntilMs"],
  bearer: StoredSecrets["bearer"],
  bearerToken: StoredSecrets["bearerToken"],
  settings: string | null,
];

export function claimCall(request: ClaimRequest, excluded: readonly number[] = []): ClaimCall {
  const quotas = new Float64Array(request.quotas.size * QUOTA.count);
  let start = 0;
  for (const [id, { leased, capacity, tier }] of request.quotas) {
    quotas[start + QUOTA.at.id] = id;
    quotas[start + QUOTA.at.leased] = leased;
    quotas[start + QUOTA.at.capacity] = capacity;
    quotas[start + QUOTA.at.tier] = tier;
    start += QUOTA.count;
  }
  return { ...request, quotas, takers: request.takers && [...request.takers], excluded };
}

/** Reads the subscriptions of claims. The last ones are retained, as many claims are for the same. */
export class ClaimedSubscriptions {
  readonly #secrets: OpenedSecrets;
  #lastRows = "[]";
  #last: ReadonlyMap<number, ClaimedSubscription> = new Map();

  constructor(key: Uint8Array | undefined) {
    this.#secrets = new OpenedSecrets(key);
  }

  /** @param rows `SubscriptionRow`s as JSON */
  read(rows: string): ReadonlyMap<number, ClaimedSubscription> {
    if (rows === this.#lastRows) return this.#last;
    this.#lastRows = rows;
    const all = (JSON.parse(rows) as SubscriptionRow[]).map((row) => this.#subscription(row));
    this.#last = new Map(all.map((one) => [one.subscriptionId, one]));
    return this.#last;
  }

  #subscription(row: SubscriptionRow): ClaimedSubscription {
    const { at } = SUBSCRIPTION;
    const subscriptionId = row[at.subscriptionId];
    return {
      subscriptionId,
      application: row[at.application],
      name: row[at.name],
      handler: row[at.handler],
      maxRetries: row[at.maxRetries],
      ...this.#secrets.of(subscriptionId, {
        secret: row[at.secret],
        previousSecret: row[at.previousSecret],
        previousUntilMs: row[at.previousUntilMs],
        bearer: row[at.bearer],
        bearerToken: row[at.bearerToken],
      }),
      settings: settingsFromJson(row[at.settings]),
    };
  }
}

/** The claims of a delivery's first attempt that were made with its event. */
export function recordedClaims(
  { claimId, subscriptions, deliveries }: RecordedLeases,
  event: ClaimedEvent,
  subscriptionsOf: ClaimedSubscriptions,
): readonly Claim[] {
  const byId = subscriptionsOf.read(subscriptions);
  return deliveries.map(([deliveryId, subscriptionId]) => {
    return { deliveryId, claimId, attempt: 1, failures: 0, event, subscription: byId.get(subscriptionId)! };
  });
}

export function claimAnswer(
  reply: ClaimReply,
  bytes: ArrayBuffer | undefined,
  subscriptionsOf: ClaimedSubscriptions,
): ClaimAnswer {
  const { claimId, nextDueAtMs, limitedTiers } = reply;
  const takers = new Map(reply.takers);
  const subscriptions = subscriptionsOf.read(reply.subscriptions);
  const events = new Map<number, ClaimedEvent>();
  const damaged = new Set(reply.damaged);
  let { offset } = reply;
  const claims = (JSON.parse(reply.rows) as ClaimRow[]).map((row): Claim => {
    const { at } = CLAIM;
    const eventId = row[at.eventId];
    let event = events.get(eventId);
    if (event === undefined) {
      const isDamaged = damaged.has(eventId);
      const payloadBytes = row[at.payloadBytes];
      const payload = isDamaged ? undefined : bytesAt(bytes, [offset, payloadBytes]);
      event = { eventId, action: row[at.action], payload, timestampedMs: row[at.timestampedMs] };
      events.set(eventId, event);
      if (!isDamaged) offset += payloadBytes;
    }
    // Every delivery has its subscription, which is never removed.
    return {
      deliveryId: row[at.deliveryId],
      claimId: takers.get(row[at.subscriptionId]) ?? claimId,
      attempt: row[at.attempt],
      failures: row[at.failures],
      isLate: row[at.isLate] === 1,
      event,
      subscription: subscriptions.get(row[at.subscriptionId])!,
    };
  });
  return { claims, nextDueAtMs, limitedTiers };
}

/** One result to be stored, as the main thread has it. */
export interface FinishCall extends Pick<FinishedRow, "nowMs" | "disableAfterMs"> {
  readonly result: AttemptResult;
  /** The answer's text, or why the address was refused or TLS failed, if there is any. */
  readonly text: Uint8Array | undefined;
}

/** One result, as the store's thread has it. */
export interface FinishedRow extends Pick<
  AttemptResult,
  "deliveryId" | "claimId" | "startedAtMs" | "durationMs" | "next"
> {
  readonly statusCode: number | null;
  readonly errorCode: AttemptErrorCode | null;
  /** `null` where it is of no interest. */
  readonly latencyMs: number | null;
  /** `null` where there is no text. */
  readonly textBytes: number | null;
  /** Where its text lies in the transaction's bytes. */
  readonly textOffset: number;
  /** Few have any of it. */
  readonly more: Pick<AttemptResult, "connection" | "slow" | "wait"> | null;
  readonly nowMs: number;
  readonly disableAfterMs: number | undefined;
}

interface ResultColumns extends Pick<FinishedRow, "nowMs" | "disableAfterMs"> {
  /** `ResultRow`s as JSON, which is cheaper to carry than as many objects. */
  readonly rows: string;
}

/** A result as it crosses: `packResults` and `unpackResults` have its members in this order. */
type ResultRow = readonly [
  deliveryId: number,
  claimId: number,
  startedAtMs: number,
  durationMs: number,
  latencyMs: number | null,
  statusCode: number | null,
  errorCode: AttemptErrorCode | null,
  textBytes: number | null,
  next: NextStep,
  more: FinishedRow["more"],
];

/** The last error of a delivery whose attempt failed so. */
export function errorOf({ statusCode, errorCode }: FinishedRow): string {
  return errorCode ?? (statusCode === null ? "network_error" : `HTTP ${statusCode}`);
}

const encoder = new TextEncoder();

export function finishCall(
  result: AttemptResult,
  nowMs: number,
  disableAfterMs: number | undefined,
): FinishCall {
  const { response, tlsReason = response, refusal = tlsReason } = result;
  // Half a surrogate pair has no UTF-8; an attempt must not be lost for it, so it becomes U+FFFD.
  const text = refusal === undefined ? undefined : encoder.encode(refusal);
  return { result, text, nowMs, disableAfterMs };
}

export function packResults(calls: readonly FinishCall[]): ResultColumns {
  const rows = calls.map(({ result, text }): ResultRow => {
    const { deliveryId, claimId, startedAtMs, durationMs, statusCode, errorCode, next } = result;
    const { latencyMs, connection, slow, wait } = result;
    const isBare = connection === undefined && slow === undefined && wait === undefined;
    return [
      deliveryId,
      claimId,
      startedAtMs,
      durationMs,
      latencyMs ?? null,
      statusCode ?? null,
      errorCode ?? null,
      text?.byteLength ?? null,
      next,
      isBare ? null : ({ connection, slow, wait } as FinishedRow["more"]),
    ];
  });
  const nowMs = calls.reduce((latest, call) => Math.max(latest, call.nowMs), -Infinity);
  return { nowMs, disableAfterMs: calls[0]?.disableAfterMs, rows: JSON.stringify(rows) };
}

/** @param start where their texts, one behind the other, start in the transaction's bytes */
export function unpackResults(
  { nowMs, disableAfterMs, rows }: ResultColumns,
  start: number,
): readonly FinishedRow[] {
  let offset = start;
  return (JSON.parse(rows) as ResultRow[]).map((row) => {
    const [
      deliveryId,
      claimId,
      startedAtMs,
      durationMs,
      latencyMs,
      statusCode,
      errorCode,
      textBytes,
      next,
      more,
    ] = row;
    const textOffset = offset;
    offset += textBytes ?? 0;
    return {
      deliveryId,
      claimId,
      startedAtMs,
      durationMs,
      latencyMs,
      statusCode,
      errorCode,
      textBytes,
      textOffset,
      next,
      more,
      nowMs,
      disableAfterMs,
    };
  });
}

/** What came of one result, see `finish.ts`. */
export interface Finished {
  /** The state its delivery is in now, or `FENCED` where it was not stored. */
  readonly state: number;
  /** Its subscription was deactivated by it. */
  readonly deactivated?: Deactivated;
}

/** Another claim holds the delivery. */
export const FENCED = -1;

/** Added to the state where the next delivery of a key is due by that. */
export const NEXT_IS_DUE = 16;

const STORED_STATES = ["pending", "delivered", "failed", "filtered"] as const;

const OUTCOMES = new Map<number, FinishOutcome>([
  [FENCED, { kind: "fenced" }],
  ...STORED_STATES.flatMap((state): [number, FinishOutcome][] => {
    const code = DELIVERY_STATE[state];
    return [
      [code, { kind: "stored", state }],
      [code + NEXT_IS_DUE, { kind: "stored", state, isNextDue: true }],
    ];
  }),
]);

export function outcomeOf({ state, deactivated }: Finished): FinishOutcome {
  const outcome = OUTCOMES.get(state)!;
  return deactivated === undefined || outcome.kind !== "stored" ? outcome : { ...outcome, deactivated };
}

/** For most the state says all. */
export type PackedFinished = number | WithServiceEvents<Finished>;

export function packFinished(outcomes: readonly WithServiceEvents<Finished>[]): readonly PackedFinished[] {
  return outcomes.map((outcome) =>
    outcome.serviceEvents === undefined && outcome.answer.deactivated === undefined
      ? outcome.answer.state
      : outcome,
  );
}

/** Settings as they are stored: JSON of those that are set. */
export function settingsToJson(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

/** Limited by characters, as filters are long and take several times as much once parsed. */
const parsedSettings = new LRUCache<string, SubscriptionSettings>({
  maxSize: 16_000_000,
  sizeCalculation: (_, text) => text.length,
});

/**
 * The same object for the same text, as claims bring it by the thousand. Damaged ones read as none, so that a person can see
 * and replace them; nothing is claimed for their subscription meanwhile, and doctor names it.
 */
export function settingsFromJson(text: string | null): SubscriptionSettings {
  if (text === null) return NO_SETTINGS;
  const known = parsedSettings.get(text);
  if (known !== undefined) return known;
  const settings = readableOr(NO_SETTINGS, text, (value) =>
    typeof value === "object" && !Array.isArray(value) ? { ...NO_SETTINGS, ...value } : undefined,
  );
  parsedSettings.set(text, settings);
  return settings;
}
