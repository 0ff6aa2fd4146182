import { type Column, ID_COLUMN } from "../io/table.ts";
import { nextCommand } from "../target/next-command.ts";
import type { Target } from "../target/target.ts";
import { retriesText } from "../../domain/retry.ts";
import {
  type Identity,
  parseScope,
  type Scope,
  type ScopeName,
  type Token,
  type TokenWithSecret,
} from "../../domain/token.ts";
import { TOKEN } from "../../model/token.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";

const SHOWN: ShownMembers<Token> = {
  scopes: ({ scopes }) => scopes.join(" "),
  expires_at: ({ expires_at }) => expires_at ?? "never",
};

const LINES = linesOf(TOKEN, SHOWN);

export const TOKENS = {
  noun: "token",
  plural: "tokens",
  record: LINES,
  list: listOf(TOKEN, SHOWN, {
    rowid: ID_COLUMN,
    name: { shrinkTo: 8, keepWhole: true },
    scopes: { shrinkTo: 8 },
    expires_at: { time: true },
    last_used_at: { title: "LAST USED", value: ({ last_used_at }) => last_used_at ?? "never", time: true },
  }),
  none: () => `No tokens here. Create one: ${nextCommand("tokens create NAME --scope read")}`,
} satisfies RecordView<Token>;

export const NEW_TOKEN_RECORD = [...LINES, { title: "Token", value: ({ token }: TokenWithSecret) => token }];

export const SCOPE_MAY: Readonly<Record<ScopeName, string>> = {
  publish: "publish events",
  read: "read actions, events, subscriptions and deliveries",
  listen: "make pull subscriptions to actions that it may read (scope read), and take their deliveries",
  write: "change actions and subscriptions, retry and replay deliveries",
  admin: "do everything, managing tokens included",
};

/** What a scope lets its holder do, for a person. */
function scopeInWords(scope: Scope): string {
  const { name, application } = parseScope(scope) ?? {};
  // One of a later version, which only that knows.
  if (name === undefined) return scope;
  if (application === undefined) return `${name}: ${SCOPE_MAY[name]}`;
  const may = name === "admin" ? "do everything but manage tokens" : SCOPE_MAY[name];
  return `${scope}: ${may}, of the application ${application} only`;
}

/** Who a token makes of its holder, and where. */
export function identityColumns({
  location: where,
  kind,
}: Omit<Target, "evreg">): readonly Column<Identity>[] {
  return [
    { title: "You are", value: ({ name }) => name },
    { title: kind === "remote" ? "On" : "On the data in", value: () => where },
    { title: "You may", value: ({ scopes }) => scopes.map(scopeInWords).join("\n"), lines: true },
    { title: "Expires", value: ({ expires_at }) => expires_at ?? "never" },
    {
      title: "Retries",
      // An older evreg does not say.
      value: ({ retries }) => retries && retriesText(retries.max_retries, retries.retry_schedule),
    },
    { title: "Data", value: ({ data_id }) => data_id },
  ];
}
