import { isDeepStrictEqual } from "node:util";
import {
  type ActionSettings,
  type ActionUpdate,
  type CompatibilityMode,
  isLooser,
  type SchemaBreak,
  type Schemata,
} from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { nextVersionName } from "../domain/names.ts";
import type { ActionChange, CatalogStore, StoredAction } from "../store/catalog.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { missingAction, notFound, omitUndefined, ownAction } from "./requests.ts";

/** How often an update is tried again because others came first. */
const MAX_TRIES = 20;
const MAX_VERSIONS_TRIED = 50;

/** Finds what a schema breaks that is to replace another one and was checked. */
export type Compare = (
  older: Schemata,
  newer: Schemata,
  mode: CompatibilityMode,
) => Promise<readonly SchemaBreak[]>;

interface Update {
  readonly body: ActionUpdate;
  /** Applies a breaking schema too. */
  readonly forced: boolean;
  readonly compare: Compare;
}

/** @throws as `ActionsPort.update` says */
export async function updateAction(
  context: ServiceContext,
  access: Access,
  name: string,
  update: Update,
): Promise<StoredAction> {
  checkHasChange(update.body);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const stored = await context.store.catalog.findAction(name);
    if (stored === undefined) throw await missingAction(context.store.catalog, access, name);
    const revised = await revise(context, access, stored, update);
    if (revised !== "stale") return revised;
  }
  throw new EvregError(
    "unavailable",
    `Others kept changing ${name} at the same time. Nothing was applied; look at it again, then try again.`,
  );
}

/** @returns `stale` when another update came first */
async function revise(
  context: ServiceContext,
  access: Access,
  stored: StoredAction,
  { body, forced, compare }: Update,
): Promise<StoredAction | "stale"> {
  const { clock, actions } = context;
  const { catalog } = context.store;
  const { application = stored.application, schemata = stored.schemata } = body;
  access.require("write", stored.application);
  access.require("write", application);
  if (forced) access.require("admin", stored.application);
  if (stored.isBuiltIn) throw ownAction(stored.action, "changed");
  checkAgreement(stored, body);
  const settings = await settingsAfter(catalog, access, stored, body);
  if (isLooser(stored.compatibility, settings.compatibility)) access.require("admin", stored.application);
  const hasNewSchema = !isDeepStrictEqual(stored.schemata, schemata);
  const hasNewSettings = !isDeepStrictEqual({ ...stored, ...settings }, stored);
  const change = omitUndefined<Pick<ActionChange, "schemata" | "application" | "settings">>({
    schemata: hasNewSchema ? schemata : undefined,
    application: application === stored.application ? undefined : application,
    settings: hasNewSettings ? settings : undefined,
  });
  if (Object.keys(change).length === 0) return stored;
  const acceptedIn = forced ? "none" : settings.compatibility;
  const changes = hasNewSchema ? await compare(stored.schemata, schemata, acceptedIn) : [];
  if (changes.length > 0) {
    const suggestion = await freeName(catalog, stored.action);
    throw new EvregError(
      "conflict",
      `This schema would break ${stored.action} for someone. Create it as ${suggestion} instead, and publish to both for a while.`,
      { changes, suggestion, application },
    );
  }
  try {
    const named = { action: stored.action, expectedVersion: stored.version };
    const revised = await catalog.reviseAction(
      { ...named, ...change, acceptedIn },
      clock.now(),
      access.actor,
    );
    if (revised === undefined) throw notFound("action", stored.action);
    return revised;
  } finally {
    actions.changed();
  }
}

function checkHasChange(body: ActionUpdate): void {
  const { action: _a, rowid: _r, revision: _n, timestamped: _t, ...changes } = body;
  if (Object.keys(changes).length > 0) return;
  throw invalidField("schemata", "is missing, and so is anything else that could be changed");
}

/** A whole Action may come back with a new schema; the rest must agree, or its sender means another one. */
function checkAgreement(stored: StoredAction, body: ActionUpdate): void {
  for (const member of ["action", "rowid", "revision", "timestamped"] as const) {
    const value = body[member];
    if (value === undefined || value === stored[member]) continue;
    const is = JSON.stringify(stored[member]);
    const message = `is ${is} here and cannot be changed; leave it out, or fetch the action again`;
    throw invalidField(member, message, value);
  }
}

async function freeName(catalog: CatalogStore, action: string): Promise<string> {
  let name = nextVersionName(action);
  for (let tries = 0; tries < MAX_VERSIONS_TRIED; tries++) {
    if ((await catalog.findAction(name)) === undefined) break;
    name = nextVersionName(name);
  }
  return name;
}

/**
 * The action's settings after an update.
 * @throws `invalid` for a successor that cannot be, `not_found` for one that is not there
 */
async function settingsAfter(
  catalog: CatalogStore,
  access: Access,
  stored: StoredAction,
  body: ActionUpdate,
): Promise<ActionSettings> {
  const { compatibility = stored.compatibility } = body;
  const { deprecated = stored.deprecated, retired = stored.retired } = body;
  const isEnding = deprecated || retired;
  const { successor = isEnding ? stored.successor : null } = body;
  if (successor !== null && !isEnding) {
    const message =
      "is only for an action that is deprecated or retired; set one of them as well, or leave it out";
    throw invalidField("successor", message, successor);
  }
  if (successor !== null && successor !== stored.successor) {
    await checkSuccessor(catalog, access, stored.action, successor);
  }
  return { compatibility, deprecated, retired, successor };
}

async function checkSuccessor(
  catalog: CatalogStore,
  access: Access,
  action: string,
  successor: string,
): Promise<void> {
  if (successor === action) throw invalidField("successor", "must be another action", successor);
  const candidate = await catalog.findAction(successor);
  // Callers who may neither read nor change it do not learn that it exists.
  const isVisible =
    candidate !== undefined &&
    (access.allows("read", candidate.application) || access.allows("write", candidate.application));
  if (!isVisible) throw await missingAction(catalog, access, successor, "successor");
  if (candidate.isBuiltIn) {
    const message = "tells of evreg itself, so nobody can publish to it; name another, or none";
    throw invalidField("successor", message, successor);
  }
}
