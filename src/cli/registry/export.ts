import { isDeepStrictEqual } from "node:util";
import { Document, isScalar, visit } from "yaml";
import type { Action } from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { isReservedName } from "../../domain/names.ts";
import { SERVICE_APPLICATION } from "../../domain/service-events.ts";
import type { Evreg } from "../../evreg.ts";
import { escapeControlInJson } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { isOfListener } from "../listen/subscriptions.ts";
import { keyOf } from "./declarations.ts";
import { ACTION, NEW_RECORD_DEFAULTS, type DeclaredKind, SUBSCRIPTION, type Values } from "./members.ts";
import type { Registry } from "./plan.ts";

/** What files can declare, as a document that `apply` reads. */
export interface ExportedRegistry {
  readonly actions: readonly Values[];
  readonly subscriptions: readonly Values[];
}

/**
 * @param application only what it owns, and its subscriptions
 * @throws EvregError `not_found` where it has neither
 */
export async function registryOf(evreg: Evreg, application?: string): Promise<Registry> {
  const query = application === undefined ? {} : { application };
  const [actions, subscriptions, identity] = await Promise.all([
    evreg.actions.list(query),
    evreg.subscriptions.list(query),
    evreg.whoami(),
  ]);
  if (application !== undefined && actions.data.length === 0 && subscriptions.data.length === 0) {
    const all = `See which there are: ${nextCommand("actions")}, ${nextCommand("subscriptions")}`;
    throw new EvregError(
      "not_found",
      `No action and no subscription is of the application ${application}. ${all}`,
    );
  }
  return {
    actions: actions.data,
    subscriptions: subscriptions.data,
    retries: identity.data.retries,
  };
}

/**
 * The same registry always gives the same document: sorted, without rowids, times, secrets and default values, and without the
 * subscriptions of `evreg listen`, which end by themselves.
 */
export function exported({ actions, subscriptions: all, retries }: Registry): ExportedRegistry {
  const subscriptions = all.filter((one) => !isOfListener(one));
  return {
    actions: recordsOf(ACTION, actions.filter(isDeclarable), retries),
    subscriptions: recordsOf(SUBSCRIPTION, subscriptions, retries),
  };
}

/** Every registry has the service's own actions. */
function isDeclarable({ action, application }: Action): boolean {
  return application !== SERVICE_APPLICATION || !isReservedName(action);
}

function recordsOf(kind: DeclaredKind, records: readonly Values[], retries: Registry["retries"]): Values[] {
  return records
    .toSorted((a, b) => (keyOf(kind, a) < keyOf(kind, b) ? -1 : 1))
    .map((record) => declarationOf(kind, record, retries));
}

function declarationOf(
  { identity, members }: DeclaredKind,
  values: Values,
  retries: Registry["retries"],
): Values {
  const declaration: Record<string, unknown> = {};
  for (const name of identity) declaration[name] = values[name];
  for (const [name, defaultOf] of members) {
    // A file that said `active: true` would undo each pause.
    const usual = Object.hasOwn(NEW_RECORD_DEFAULTS, name)
      ? NEW_RECORD_DEFAULTS[name]
      : defaultOf(values, retries);
    if (!isDeepStrictEqual(values[name], usual)) declaration[name] = values[name];
  }
  return declaration;
}

export type ExportFormat = "yaml" | "json";

/** Characters that act on a terminal are escaped, which changes no value. */
export function exportText(registry: ExportedRegistry, format: ExportFormat): string {
  if (format === "json") return escapeControlInJson(`${JSON.stringify(registry, null, 2)}\n`);
  // No anchors for equal parts, and no line breaks inside of texts.
  const document = new Document(registry, { aliasDuplicateObjects: false });
  visit(document, {
    Pair(_, { key }) {
      // Unquoted, a member of this name would be merged.
      if (isScalar(key) && key.value === "<<") key.type = "QUOTE_DOUBLE";
    },
    Scalar(_, scalar) {
      const { value } = scalar;
      // YAML has the escapes of JSON only between these.
      if (typeof value === "string" && escapeControlInJson(value) !== value) scalar.type = "QUOTE_DOUBLE";
    },
  });
  return escapeControlInJson(document.toString({ lineWidth: 0 }));
}
