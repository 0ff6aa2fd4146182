import { durationText, parseDurationMs } from "../../../domain/formats.ts";
import type { JsonSchema } from "../../../domain/request.ts";
import { defaultRetries, retriesText, type RetryDefaults, retryWaitMs } from "../../../domain/retry.ts";
import type { Bearer, SubscriptionMode } from "../../../domain/subscription.ts";
import type { Field, SettingOf } from "../../../model/field.ts";
import { SUBSCRIPTION } from "../../../model/subscription.ts";
import { COUNT, type FieldKind, Unreadable } from "../../../model/value-kinds.ts";
import { ApiError } from "../../api/resource.ts";
import { indented, whyNoObject } from "../../parts/json-tokens.ts";
import type { ReadSubscription } from "../../records/exact-record.ts";

/** A setting that one text stands for. */
type PlainSetting = Exclude<SettingOf<typeof SUBSCRIPTION>, "filter" | "ordered" | "on_exhausted">;

interface PlainField extends Pick<Field, "only" | "title" | "words" | "unset" | "group" | "hint"> {
  readonly name: PlainSetting;
  readonly kind: FieldKind;
  readonly schema: JsonSchema;
}

const PLAIN_SETTINGS: readonly PlainField[] = Object.entries<Field>(SUBSCRIPTION).flatMap(
  ([name, { kind, none, change: schema, ...field }]) =>
    kind === undefined || none === undefined || schema === undefined
      ? []
      : [{ ...field, name: name as PlainSetting, kind, schema }],
);

const plainTexts = (textOf: (field: PlainField) => string): Readonly<Record<PlainSetting, string>> =>
  Object.fromEntries(PLAIN_SETTINGS.map((field) => [field.name, textOf(field)])) as Record<
    PlainSetting,
    string
  >;

const isFor = ({ only }: PlainField, mode: SubscriptionMode): boolean =>
  only === undefined || only.mode === mode;

/** Those that the form has for one of a mode; with a group, those of it alone. */
export function formOf(mode: SubscriptionMode, group?: string): readonly PlainField[] {
  return PLAIN_SETTINGS.filter(
    (field) => field.group !== undefined && (group ?? field.group) === field.group && isFor(field, mode),
  );
}

export const BEARERS: Readonly<Record<Bearer, string>> = {
  secret: "The secret",
  own: "A value of its own",
  none: "None",
};

/** What the form of a new subscription begins with: its settings as a person types them. */
export const EMPTY_DRAFT = {
  application: "",
  subscription: "",
  action: "",
  mode: "push" as SubscriptionMode,
  handler: "",
  max_retries: "",
  order: "any" as "any" | "all" | "key",
  key: "",
  on_exhausted: "block" as "block" | "skip",
  ...plainTexts(() => ""),
  /** JSON text. */
  filter: "",
  bearer: "secret" as Bearer,
  bearer_token: "",
};
export type Draft = Readonly<typeof EMPTY_DRAFT>;

export function draftOf(subscription: ReadSubscription): Draft {
  const { application, subscription: name, action, mode, bearer, ordered, exactText } = subscription;
  return {
    ...plainTexts((field) => {
      const value = subscription[field.name];
      return value === null ? "" : field.kind.write(value);
    }),
    application,
    subscription: name,
    action,
    mode,
    bearer,
    handler: subscription.handler ?? "",
    max_retries: String(subscription.max_retries),
    order: ordered === false ? "any" : ordered === true ? "all" : "key",
    key: typeof ordered === "object" ? ordered.key : "",
    on_exhausted: subscription.on_exhausted ?? "block",
    filter: subscription.filter === null ? "" : indented(exactText),
    bearer_token: "",
  };
}

/** What cannot be sent as it was typed; the server judges all else. */
const refusal = (field: keyof Draft, message: string): ApiError => new ApiError(422, message, { field });

/** What a text stands for; `null` for none. @throws ApiError */
function valueOf(name: keyof Draft, text: string, kind: FieldKind, schema: JsonSchema = {}): unknown {
  if (text.trim() === "") return null;
  try {
    return kind.read(text.trim(), schema);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    throw refusal(name, `It ${error.message}.`);
  }
}

/** The text of a filter or payload, if it is one JSON object. @throws ApiError */
export function objectText(field: keyof Draft, text: string): string {
  const why = whyNoObject(text);
  if (why !== undefined) throw refusal(field, why);
  return text.trim();
}

/** A member of the body with its value as JSON text. */
type Member = readonly [name: string, json: string];

const member = (name: string, value: unknown): Member => [name, JSON.stringify(value)];

function membersOf(draft: Draft): readonly Member[] {
  const { mode, filter } = draft;
  const bearer =
    draft.bearer === "own" && draft.bearer_token !== ""
      ? member("bearer_token", draft.bearer_token)
      : member("bearer", draft.bearer);
  const retries = valueOf("max_retries", draft.max_retries, COUNT);
  return [
    member("action", draft.action.trim()),
    ...(mode === "push" ? [member("handler", draft.handler.trim()), bearer] : []),
    ...(retries === null ? [] : [member("max_retries", retries)]),
    ...PLAIN_SETTINGS.filter((field) => isFor(field, mode)).map(({ name, kind, schema }) =>
      member(name, valueOf(name, draft[name], kind, schema)),
    ),
    member("ordered", draft.order === "key" ? { key: draft.key } : draft.order === "all"),
    member("on_exhausted", draft.order === "any" ? null : draft.on_exhausted),
    ["filter", filter.trim() === "" ? "null" : objectText("filter", filter)],
  ];
}

const bodyOf = (members: readonly Member[]): string =>
  `{${members.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;

/** The body that creates it. @throws ApiError */
export function newBody(draft: Draft): string {
  const names = (["application", "subscription", "mode"] as const).map((name) =>
    member(name, draft[name].trim()),
  );
  return bodyOf([...names, ...membersOf(draft).filter(([, json]) => json !== "null")]);
}

/** The body that changes it, with the members that are not what they were; `undefined` where none is. @throws ApiError */
export function changeBody(draft: Draft, before: Draft): string | undefined {
  const was = new Map(membersOf(before));
  const changed = membersOf(draft).filter(([name, json]) => was.get(name) !== json);
  return changed.length === 0 ? undefined : bodyOf(changed);
}

/** So many waits are named. */
const NAMED_WAITS = 7;

/** `0s, 2s, 4s, 8s, 16s`: the wait before each retry there is. */
export function waitsText(retries: number, waitsMs: readonly number[] | null): string {
  const named = Array.from({ length: Math.min(retries, NAMED_WAITS) }, (_, index) =>
    durationText(retryWaitMs(index + 1, 0, waitsMs)),
  );
  return `${named.join(", ")}${retries > NAMED_WAITS ? " and so on" : ""}`;
}

/** `5 retries, the last 30 s after the first attempt.` */
export function retriesSentence(retries: number, waitsMs: readonly number[] | null): string {
  const text = retriesText(retries, waitsMs);
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}

/** What the retries and waits in a form come to; `undefined` while they cannot be read. */
export function draftedRetries(
  { max_retries: typed, retry_schedule: schedule }: Pick<Draft, "max_retries" | "retry_schedule">,
  usual: RetryDefaults,
): string | undefined {
  const waits = schedule
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((wait) => parseDurationMs(wait));
  if (waits.includes(undefined)) return undefined;
  const own = waits.length === 0 ? null : (waits as number[]);
  const retries = typed.trim() === "" ? defaultRetries({ retry_schedule: own }, usual) : Number(typed);
  if (!Number.isInteger(retries) || retries < 0 || retries > 20) return undefined;
  return retriesSentence(retries, own ?? usual.retry_schedule);
}
