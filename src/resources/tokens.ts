import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import type { Target } from "../cli/target/target.ts";
import {
  type Identity,
  parseScope,
  type Scope,
  type ScopeName,
  type Token,
  type TokenWithSecret,
} from "../domain/token.ts";

export const TOKEN_LIST: readonly Column<Token>[] = [
  { ...ID_COLUMN, value: (token) => token.rowid },
  { title: "NAME", value: (token) => token.name, shrinkTo: 8, keepWhole: true },
  { title: "SCOPES", value: (token) => token.scopes.join(" "), shrinkTo: 8 },
  { title: "EXPIRES", value: (token) => token.expires_at ?? "never", time: true },
  { title: "LAST USED", value: (token) => token.last_used_at ?? "never", time: true },
];

export const TOKEN_RECORD: readonly Column<Token>[] = [
  { title: "ID", value: (token) => token.rowid },
  { title: "Name", value: (token) => token.name },
  { title: "Scopes", value: (token) => token.scopes.join(" ") },
  { title: "Expires", value: (token) => token.expires_at ?? "never" },
  { title: "Created", value: (token) => token.timestamped },
];

export const NEW_TOKEN_RECORD: readonly Column<TokenWithSecret>[] = [
  ...TOKEN_RECORD,
  { title: "Token", value: (token) => token.token },
];

export const SCOPE_MAY: Readonly<Record<ScopeName, string>> = {
  publish: "publish events",
  read: "read actions, events, subscriptions and deliveries",
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
  context,
}: Omit<Target, "evreg">): readonly Column<Identity>[] {
  return [
    { title: "You are", value: ({ name }) => name },
    { title: kind === "remote" ? "On" : "On the data folder", value: () => where },
    { title: "Context", value: () => context },
    { title: "You may", value: ({ scopes }) => scopes.map(scopeInWords).join("\n"), lines: true },
    { title: "Expires", value: ({ expires_at }) => expires_at ?? "never" },
    { title: "Data", value: ({ data_id }) => data_id },
  ];
}
