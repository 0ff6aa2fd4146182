import { parseScope } from "../domain/scope.ts";
import type { Scope, ScopeName } from "../domain/token.ts";

export const SCOPE_MAY: Readonly<Record<ScopeName, string>> = {
  publish: "publish events",
  read: "read actions, events, subscriptions and deliveries",
  write: "change actions and subscriptions, retry and replay deliveries",
  admin: "do everything, managing tokens included",
};

/** What a scope lets its holder do, for a person. */
export function scopeInWords(scope: Scope): string {
  const { name, application } = parseScope(scope) ?? {};
  // One of a later version, which only that knows.
  if (name === undefined) return scope;
  if (application === undefined) return `${name}: ${SCOPE_MAY[name]}`;
  const may = name === "admin" ? "do everything but manage tokens" : SCOPE_MAY[name];
  return `${scope}: ${may}, of the application ${application} only`;
}
