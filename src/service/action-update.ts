import { isDeepStrictEqual } from "node:util";
import type { Action, ActionUpdate, SchemaWarning } from "../domain/action.ts";
import { isLooser } from "../domain/compatibility.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { nextVersionName } from "../domain/names.ts";
import type { ActionChange, StoredAction } from "../store/actions.ts";
import type { Store } from "../store/store.ts";
import type { Access } from "./access.ts";
import { changedSettings, settingsAfter } from "./action-settings.ts";
import { actionOf, given, notFound, ownAction } from "./answers.ts";
import { admissionOf, breaksOf } from "./compatibility.ts";
import type { ServiceContext } from "./context.ts";
import { historyWarnings } from "./older-breaks.ts";
import type { SchemaTurns } from "./schema-work.ts";

/** How often an update follows others that come before it. */
const MAX_TRIES = 20;
/** How many versions a suggested name may lie ahead. */
const MAX_VERSIONS_TRIED = 50;

export interface Update {
  readonly body: ActionUpdate;
  /** A breaking schema is applied all the same. */
  readonly forced: boolean;
  /** In which the schemas are compared. */
  readonly turns: SchemaTurns;
}

export interface Updated {
  readonly action: Action;
  /** Of the rule that changes are held to from now on. */
  readonly warnings: readonly SchemaWarning[];
}

/** @throws as `ActionsPort.update` says */
export async function updateAction(
  context: ServiceContext,
  access: Access,
  name: string,
  update: Update,
): Promise<Updated> {
  checkHasChange(update.body);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await context.store.findAction(name);
    if (stored === undefined) throw notFound("action", name);
    const revised = await revise(context, access, stored, update);
    if (revised !== "stale") return revised;
  }
  throw new EvregError(
    "unavailable",
    `Others kept changing ${name} at the same time. Nothing was applied; look at it again, then try again.`,
  );
}

/** One step of an update; `stale` when another came before it. */
async function revise(
  context: ServiceContext,
  access: Access,
  stored: StoredAction,
  { body, forced, turns }: Update,
): Promise<Updated | "stale"> {
  const { store, clock, actions } = context;
  const { application = stored.application, schemata = stored.schemata } = body;
  access.require("write", stored.application);
  access.require("write", application);
  if (forced) access.require("admin", stored.application);
  if (stored.isBuiltIn) throw ownAction(stored.action, "changed");
  checkAgreement(stored, body);
  const settings = await settingsAfter(store, access, stored, body);
  if (isLooser(stored, settings)) access.require("admin", stored.application);
  const hasNewSchema = !isDeepStrictEqual(stored.schemata, schemata);
  const change: ActionChange = {
    action: stored.action,
    basedOnEdition: stored.edition,
    ...given({
      schemata: hasNewSchema ? schemata : undefined,
      application: application === stored.application ? undefined : application,
      settings: changedSettings(stored, settings),
    }),
  };
  // Nothing but the two members that name what is changed.
  if (Object.keys(change).length === 2) return { action: actionOf(stored), warnings: [] };
  if (hasNewSchema && !forced) {
    const changes = await breaksOf(store, turns, stored, schemata, settings);
    if (changes.length > 0) {
      const suggestion = await freeName(store, stored.action);
      throw new EvregError(
        "conflict",
        `This schema would break ${stored.action} for someone. Create it as ${suggestion} instead, and publish to both for a while.`,
        { changes, suggestion, application },
      );
    }
  }
  const isComparedWithAll =
    settings.compatibility_against === "all" && stored.compatibility_against !== "all";
  // Each comparison waits for its turn as a first one does: without a schema none was let in yet.
  const begin: SchemaTurns["begin"] = (task) => turns.begin(task);
  const warnings =
    isComparedWithAll && (forced || !hasNewSchema)
      ? historyWarnings(await breaksOf(store, { begin, goOn: begin }, stored, schemata, settings))
      : [];
  const admission = await admissionOf(turns, stored, schemata, forced ? "none" : settings.compatibility);
  try {
    const revised = await store.reviseAction({ ...change, admission }, clock.now());
    if (revised === undefined) throw notFound("action", stored.action);
    return revised === "stale" ? revised : { action: revised, warnings };
  } finally {
    actions.forget(stored.action);
    if (change.settings !== undefined) actions.forgetLeading();
  }
}

function checkHasChange(body: ActionUpdate): void {
  const { action: _a, rowid: _r, revision: _n, timestamped: _t, ...changes } = body;
  if (Object.keys(changes).length > 0) return;
  throw invalidField("schemata", "is missing, and so is anything else that could be changed");
}

/** A whole Action may come back with a new schema; what else it says must be so, or its sender means another one. */
function checkAgreement(stored: StoredAction, body: ActionUpdate): void {
  for (const member of ["action", "rowid", "revision", "timestamped"] as const) {
    const said = body[member];
    if (said === undefined || said === stored[member]) continue;
    throw invalidField(
      member,
      `is ${JSON.stringify(stored[member])} here and cannot be changed; leave it out, or fetch the action again`,
      said,
    );
  }
}

async function freeName(store: Store, action: string): Promise<string> {
  let name = nextVersionName(action);
  for (let tries = 0; tries < MAX_VERSIONS_TRIED; tries++) {
    if ((await store.findAction(name)) === undefined) break;
    name = nextVersionName(name);
  }
  return name;
}
