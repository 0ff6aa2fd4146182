import { type Column, id } from "../cli/io/table.ts";
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
  { ...id, of: (token) => token.rowid },
  { title: "NAME", of: (token) => token.name, shrinkTo: 8, whole: true },
  { title: "SCOPES", of: (token) => token.scopes.join(" "), shrinkTo: 8 },
  { title: "EXPIRES", of: (token) => token.expires_at ?? "never", time: true },
  { title: "LAST USED", of: (token) => token.last_used_at ?? "never", time: true },
];

export const TOKEN_RECORD: readonly Column<Token>[] = [
  { title: "ID", of: (token) => token.rowid },
  { title: "Name", of: (token) => token.name },
  { title: "Scopes", of: (token) => token.scopes.join(" ") },
  { title: "Expires", of: (token) => token.expires_at ?? "never" },
  { title: "Created", of: (token) => token.timestamped },
];

export const NEW_TOKEN_RECORD: readonly Column<TokenWithSecret>[] = [
  ...TOKEN_RECORD,
  { title: "Token", of: (token) => token.token },
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
  where,
  kind,
  context,
}: Omit<Target, "evreg">): readonly Column<Identity>[] {
  return [
    { title: "You are", of: ({ name }) => name },
    { title: kind === "remote" ? "On" : "On the data folder", of: () => where },
    { title: "Context", of: () => context },
    { title: "You may", of: ({ scopes }) => scopes.map(scopeInWords).join("\n"), lines: true },
    { title: "Expires", of: ({ expires_at }) => expires_at ?? "never" },
    { title: "Data", of: ({ data_id }) => data_id },
  ];
}
