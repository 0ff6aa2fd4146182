import { isDeepStrictEqual } from "node:util";
import type { Action } from "../../domain/action.ts";
import { SERVICE_APPLICATION } from "../../domain/service-events.ts";
import type { Evreg } from "../../evreg.ts";
import { keyOf } from "./declared.ts";
import { ACTION, AS_NEW, SUBSCRIPTION, type Declarable, type Values } from "./members.ts";
import type { Registry } from "./plan.ts";
import { isReservedName } from "../../domain/names.ts";

/** What files can declare, as a document that `apply` reads. */
export interface ExportedRegistry {
  readonly actions: readonly Values[];
  readonly subscriptions: readonly Values[];
}

/** @param application only what it owns, and its subscriptions */
export async function registryOf(evreg: Evreg, application?: string): Promise<Registry> {
  const query = application === undefined ? {} : { application };
  const [actions, subscriptions] = await Promise.all([
    evreg.actions.list(query),
    evreg.subscriptions.list(query),
  ]);
  return { actions: actions.data, subscriptions: subscriptions.data };
}

/**
 * The same registry always gives the same document: sorted, without rowids, times and secrets, and without members that
 * are as for a new record.
 */
export function exported({ actions, subscriptions }: Registry): ExportedRegistry {
  return {
    actions: recordsOf(ACTION, actions.filter(isDeclarable)),
    subscriptions: recordsOf(SUBSCRIPTION, subscriptions),
  };
}

/** One document for each application, by its name. */
export function byApplication({ actions, subscriptions }: Registry): ReadonlyMap<string, ExportedRegistry> {
  const declarable = [...actions.filter(isDeclarable), ...subscriptions];
  const names = new Set(declarable.map(({ application }) => application));
  return new Map(
    [...names].toSorted().map((name) => {
      const own = {
        actions: actions.filter(({ application }) => application === name),
        subscriptions: subscriptions.filter(({ application }) => application === name),
      };
      return [name, exported(own)];
    }),
  );
}

/** The service's own actions are in every registry by themselves. */
function isDeclarable({ action, application }: Action): boolean {
  return application !== SERVICE_APPLICATION || !isReservedName(action);
}

function recordsOf(kind: Declarable, records: Registry["actions"] | Registry["subscriptions"]): Values[] {
  return records
    .map((record): readonly [string, Values] => {
      const values = record as unknown as Values;
      return [keyOf(kind, values), declarationOf(kind, values)];
    })
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, declaration]) => declaration);
}

function declarationOf({ identity, members }: Declarable, values: Values): Values {
  const declaration: Record<string, unknown> = {};
  for (const name of identity) declaration[name] = values[name];
  for (const [name, unlessSaid] of members) {
    const value = values[name];
    // A file that said `active: true` would undo each pause.
    const usual = Object.hasOwn(AS_NEW, name) ? AS_NEW[name] : unlessSaid(values);
    const isUsual = isDeepStrictEqual(value, usual);
    if (!isUsual) declaration[name] = value;
  }
  return declaration;
}
