import { invalidField } from "./error.ts";
import { checkLabel } from "./names.ts";
import { SCOPE_NAMES } from "./token.ts";
import type { Scope, ScopeName } from "./token.ts";

/** A scope taken apart: `application` is absent when it is not limited to one. */
export interface ParsedScope {
  readonly name: ScopeName;
  readonly application?: string;
}

/** `publish` or `publish:billing`; the application's own name may hold colons. `undefined` for anything else. */
export function parseScope(scope: Scope): ParsedScope | undefined {
  const colon = scope.indexOf(":");
  const name = colon === -1 ? scope : scope.slice(0, colon);
  if (!isScopeName(name)) return undefined;
  if (colon === -1) return { name };
  return colon === scope.length - 1 ? undefined : { name, application: scope.slice(colon + 1) };
}

/**
 * A scope as it is kept, its application trimmed.
 * @throws `invalid` with the field at fault
 */
export function checkScope(field: string, value: unknown): Scope {
  if (typeof value !== "string") throw invalidField(field, "must be a string", value);
  const parsed = parseScope(value);
  if (parsed === undefined) {
    const known = SCOPE_NAMES.join(", ");
    throw invalidField(
      field,
      `must be one of ${known}, each alone or limited to an application as in publish:billing`,
      value.slice(0, 200).toWellFormed(),
    );
  }
  return parsed.application === undefined
    ? parsed.name
    : `${parsed.name}:${checkLabel(field, parsed.application)}`;
}

function isScopeName(name: string): name is ScopeName {
  return (SCOPE_NAMES as readonly string[]).includes(name);
}
