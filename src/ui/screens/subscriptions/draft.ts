import type { Bearer, Subscription, SubscriptionMode } from "../../../domain/subscription.ts";
import { durationText, parseDurationMs } from "../../../domain/formats.ts";
import { ApiError } from "../../api/request.ts";
import { indentedLines, textOfLines, whyNoObject } from "../../parts/json-tokens.ts";

/** A subscription's settings as a person types them. */
export interface Draft {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly mode: SubscriptionMode;
  readonly handler: string;
  readonly max_retries: string;
  /** `0s, 30s, 10m` */
  readonly retry_schedule: string;
  readonly order: "any" | "all" | "key";
  readonly key: string;
  readonly on_exhausted: "block" | "skip";
  readonly rate_limit: string;
  readonly max_in_flight: string;
  /** `30s` */
  readonly timeout_ms: string;
  readonly expires_after_ms: string;
  /** A line each: `Name: value`. */
  readonly headers: string;
  /** JSON text. */
  readonly filter: string;
  readonly bearer: Bearer;
  readonly bearer_token: string;
}

/** A subscription with its filter as it is stored: a number past 2^53 in it stays what it is. */
export type ReadSubscription = Subscription & { readonly filterText: string | null };

export const EMPTY_DRAFT: Draft = {
  application: "",
  subscription: "",
  action: "",
  mode: "push",
  handler: "",
  max_retries: "",
  retry_schedule: "",
  order: "any",
  key: "",
  on_exhausted: "block",
  rate_limit: "",
  max_in_flight: "",
  timeout_ms: "",
  expires_after_ms: "",
  headers: "",
  filter: "",
  bearer: "secret",
  bearer_token: "",
};

const textOf = (value: number | null): string => (value === null ? "" : String(value));

export function draftOf(subscription: ReadSubscription): Draft {
  const { ordered, filterText, headers } = subscription;
  return {
    application: subscription.application,
    subscription: subscription.subscription,
    action: subscription.action,
    mode: subscription.mode,
    handler: subscription.handler ?? "",
    max_retries: String(subscription.max_retries),
    retry_schedule: (subscription.retry_schedule ?? []).map(spanText).join(", "),
    order: ordered === false ? "any" : ordered === true ? "all" : "key",
    key: typeof ordered === "object" ? ordered.key : "",
    on_exhausted: subscription.on_exhausted ?? "block",
    rate_limit: textOf(subscription.rate_limit),
    max_in_flight: textOf(subscription.max_in_flight),
    timeout_ms: subscription.timeout_ms === null ? "" : spanText(subscription.timeout_ms),
    expires_after_ms: subscription.expires_after_ms === null ? "" : spanText(subscription.expires_after_ms),
    headers: Object.entries(headers ?? {})
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
    filter: filterText === null ? "" : textOfLines(indentedLines(filterText)),
    bearer: subscription.bearer,
    bearer_token: "",
  };
}

/** What cannot be sent as it was typed; the server judges all else. */
function refusal(field: keyof Draft, message: string): ApiError {
  return new ApiError(422, message, { field });
}

/** `90s` for 90,000: the largest unit without a rest, as the command line takes it. */
export function spanText(ms: number): string {
  return ms === 0 ? "0s" : durationText(ms);
}

function spanMs(field: keyof Draft, text: string): number {
  const ms = parseDurationMs(text.trim());
  if (ms === undefined) throw refusal(field, `${text.trim()} is no time such as 500ms, 30s, 10m, 2h or 7d.`);
  return ms;
}

function numberOf(field: keyof Draft, text: string): number | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  if (Number.isNaN(value)) throw refusal(field, `${text.trim()} is no number.`);
  return value;
}

function headersOf(text: string): Readonly<Record<string, string>> | null {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return null;
  const pairs = lines.map((line) => {
    const colon = line.indexOf(":");
    if (colon === -1) throw refusal("headers", `“${line.trim()}” is no line such as X-Team: billing.`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const;
  });
  const names = pairs.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw refusal("headers", `${twice} is named twice.`);
  return Object.fromEntries(pairs);
}

/** The text of a filter or payload, if it is one JSON object. @throws ApiError */
export function objectText(field: keyof Draft, text: string): string {
  const why = whyNoObject(text);
  if (why !== undefined) throw refusal(field, why);
  return text.trim();
}

/** A member of the body with its value as JSON text. */
type Member = readonly [name: string, json: string];

function membersOf(draft: Draft): readonly Member[] {
  const { mode, filter } = draft;
  const given = (name: keyof Draft, value: unknown): Member => [name, JSON.stringify(value)];
  const time = (name: "timeout_ms" | "expires_after_ms"): Member =>
    given(name, draft[name].trim() === "" ? null : spanMs(name, draft[name]));
  const waits = draft.retry_schedule.split(/[\s,]+/).filter(Boolean);
  const ofPush = (): readonly Member[] => [
    given("handler", draft.handler.trim()),
    given("rate_limit", numberOf("rate_limit", draft.rate_limit)),
    given("max_in_flight", numberOf("max_in_flight", draft.max_in_flight)),
    time("timeout_ms"),
    given("headers", headersOf(draft.headers)),
    ...(draft.bearer === "own" && draft.bearer_token !== ""
      ? [given("bearer_token", draft.bearer_token)]
      : [given("bearer", draft.bearer)]),
  ];
  const retries = numberOf("max_retries", draft.max_retries);
  return [
    given("action", draft.action.trim()),
    ...(mode === "push" ? ofPush() : [time("expires_after_ms")]),
    ...(retries === null ? [] : [given("max_retries", retries)]),
    given("retry_schedule", waits.length === 0 ? null : waits.map((wait) => spanMs("retry_schedule", wait))),
    ["ordered", JSON.stringify(draft.order === "key" ? { key: draft.key } : draft.order === "all")],
    given("on_exhausted", draft.order === "any" ? null : draft.on_exhausted),
    ["filter", filter.trim() === "" ? "null" : objectText("filter", filter)],
  ];
}

const bodyOf = (members: readonly Member[]): string =>
  `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;

/** The body that creates it. @throws ApiError */
export function newBody(draft: Draft): string {
  const names: readonly Member[] = (["application", "subscription", "mode"] as const).map((name) => [
    name,
    JSON.stringify(draft[name].trim()),
  ]);
  return bodyOf([...names, ...membersOf(draft).filter(([, json]) => json !== "null")]);
}

/** The body that changes it, with the members that are not what they were; `undefined` where none is. @throws ApiError */
export function changeBody(draft: Draft, before: Draft): string | undefined {
  const was = new Map(membersOf(before));
  const changed = membersOf(draft).filter(([name, json]) => was.get(name) !== json);
  return changed.length === 0 ? undefined : bodyOf(changed);
}

/** The field of the form that an answer's `details.field` is about: `headers["X-A"]` is about `headers`. */
export function fieldOf(details: Readonly<Record<string, unknown>>): keyof Draft | undefined {
  const { field } = details;
  const [name = ""] = typeof field === "string" ? field.split(/[.[]/) : [];
  if (name === "ordered") return "key";
  return Object.hasOwn(EMPTY_DRAFT, name) ? (name as keyof Draft) : undefined;
}
