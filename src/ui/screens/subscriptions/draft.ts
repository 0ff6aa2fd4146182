import type { Bearer, SubscriptionMode } from "../../../domain/subscription.ts";
import type { JsonSchema } from "../../../domain/request.ts";
import { COUNT, type FieldKind, Unreadable } from "../../../model/value-kinds.ts";
import { ApiError } from "../../api/request.ts";
import type { ReadSubscription } from "../../records/exact-record.ts";
import { PLAIN_SETTINGS, type PlainSetting } from "./plain-settings.ts";
import { indentedLines, textOfLines, whyNoObject } from "../../parts/json-tokens.ts";

/** A subscription's settings as a person types them. */
export interface Draft extends Readonly<Record<PlainSetting, string>> {
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly mode: SubscriptionMode;
  readonly handler: string;
  readonly max_retries: string;
  readonly order: "any" | "all" | "key";
  readonly key: string;
  readonly on_exhausted: "block" | "skip";
  /** JSON text. */
  readonly filter: string;
  readonly bearer: Bearer;
  readonly bearer_token: string;
}

export const EMPTY_DRAFT: Draft = {
  application: "",
  subscription: "",
  action: "",
  mode: "push",
  handler: "",
  max_retries: "",
  order: "any",
  key: "",
  on_exhausted: "block",
  ...(Object.fromEntries(PLAIN_SETTINGS.map(({ name }) => [name, ""])) as Record<PlainSetting, string>),
  filter: "",
  bearer: "secret",
  bearer_token: "",
};

export function draftOf(subscription: ReadSubscription): Draft {
  const { ordered, exactText } = subscription;
  const plain = PLAIN_SETTINGS.map(({ name, kind }) => {
    const value = subscription[name];
    return [name, value === null ? "" : kind.write(value)];
  });
  return {
    ...(Object.fromEntries(plain) as Record<PlainSetting, string>),
    application: subscription.application,
    subscription: subscription.subscription,
    action: subscription.action,
    mode: subscription.mode,
    handler: subscription.handler ?? "",
    max_retries: String(subscription.max_retries),
    order: ordered === false ? "any" : ordered === true ? "all" : "key",
    key: typeof ordered === "object" ? ordered.key : "",
    on_exhausted: subscription.on_exhausted ?? "block",
    filter: subscription.filter === null ? "" : textOfLines(indentedLines(exactText)),
    bearer: subscription.bearer,
    bearer_token: "",
  };
}

/** What cannot be sent as it was typed; the server judges all else. */
function refusal(field: keyof Draft, message: string): ApiError {
  return new ApiError(422, message, { field });
}

/** What a text stands for; `null` for none. @throws ApiError */
function valueOf(
  name: PlainSetting | "max_retries",
  text: string,
  kind: FieldKind,
  schema: JsonSchema,
): unknown {
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
  const plain = PLAIN_SETTINGS.filter(({ only }) => only === undefined || only.mode === mode);
  const bearer =
    draft.bearer === "own" && draft.bearer_token !== ""
      ? member("bearer_token", draft.bearer_token)
      : member("bearer", draft.bearer);
  const retries = valueOf("max_retries", draft.max_retries, COUNT, {});
  return [
    member("action", draft.action.trim()),
    ...(mode === "push" ? [member("handler", draft.handler.trim()), bearer] : []),
    ...(retries === null ? [] : [member("max_retries", retries)]),
    ...plain.map(({ name, kind, schema }) => member(name, valueOf(name, draft[name], kind, schema))),
    member("ordered", draft.order === "key" ? { key: draft.key } : draft.order === "all"),
    member("on_exhausted", draft.order === "any" ? null : draft.on_exhausted),
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
