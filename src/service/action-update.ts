import { isDeepStrictEqual } from "node:util";
import {
  type Action,
  type ActionRevision,
  type ActionSettings,
  type ActionUpdate,
  type Admission,
  CHECK_LIMITS,
  type CompatibilityMode,
  type CompatibilityRule,
  isLooser,
  notCompared,
  type RevisionBreak,
  type SchemaBreak,
  type Schemata,
  sidesOf,
} from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { nextVersionName } from "../domain/names.ts";
import type { ComparisonResult } from "../schema/compatibility/compare.ts";
import type { ActionChange, CatalogStore, StoredAction } from "../store/catalog.ts";
import type { Access } from "./auth.ts";
import { chainFrom } from "./compiled-actions.ts";
import type { ServiceContext } from "./context.ts";
import { actionOf, missingAction, notFound, omitUndefined, ownAction, pagesOf } from "./requests.ts";

/** How often an update is tried again because others came first. */
const MAX_TRIES = 20;
const MAX_VERSIONS_TRIED = 50;

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
): Promise<Action> {
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
): Promise<Action | "stale"> {
  const { clock, actions } = context;
  const { catalog } = context.store;
  const { application = stored.application, schemata = stored.schemata } = body;
  access.require("write", stored.application);
  access.require("write", application);
  if (forced) access.require("admin", stored.application);
  if (stored.isBuiltIn) throw ownAction(stored.action, "changed");
  checkAgreement(stored, body);
  const settings = await settingsAfter(catalog, access, stored, body);
  if (isLooser(stored, settings)) access.require("admin", stored.application);
  const hasNewSchema = !isDeepStrictEqual(stored.schemata, schemata);
  const hasNewSettings = !isDeepStrictEqual({ ...stored, ...settings }, stored);
  const change = omitUndefined<Pick<ActionChange, "schemata" | "application" | "settings">>({
    schemata: hasNewSchema ? schemata : undefined,
    application: application === stored.application ? undefined : application,
    settings: hasNewSettings ? settings : undefined,
  });
  if (Object.keys(change).length === 0) return actionOf(stored);
  const mustConform = hasNewSchema && !forced;
  const changes = mustConform ? await breaksOf(catalog, compare, stored, schemata, settings) : [];
  if (changes.length > 0) {
    const suggestion = await freeName(catalog, stored.action);
    throw new EvregError(
      "conflict",
      `This schema would break ${stored.action} for someone. Create it as ${suggestion} instead, and publish to both for a while.`,
      { changes, suggestion, application },
    );
  }
  const admission = await admissionOf(compare, stored, schemata, forced ? "none" : settings.compatibility);
  try {
    const named = { action: stored.action, expectedVersion: stored.version };
    const revised = await catalog.reviseAction({ ...named, ...change, admission }, clock.now(), access.actor);
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
  const { compatibility = stored.compatibility, compatibility_against = stored.compatibility_against } = body;
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
  return { compatibility, compatibility_against, deprecated, retired, successor };
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
  const refuse = (why: string): never => {
    throw invalidField("successor", `${why}; name another, or none`, successor);
  };
  if (candidate.isBuiltIn) refuse("tells of evreg itself, so nobody can publish to it");
  if (candidate.retired) refuse("is retired, so nobody can publish to it");
  for await (const next of chainFrom(catalog, candidate.successor)) {
    if (next.action === action) refuse(`leads back to ${action}`);
  }
}

/** Schemas read at once, each of up to 256 KiB, one of which may take the thread 5 ms. */
export const READ_SCHEMAS = 3;
/** The steps for all revisions together: some 4 s, enough for 150 schemas of 42 KB, or three that were made to be hard. */
const STEPS_OVER_ALL = 20_000_000;
/** What it takes to begin a comparison. Reading a character of either schema is one step more. */
const STEPS_PER_COMPARISON = 1_000;

/** Compares a schema with one that is to replace it and was checked. */
export type Compare = (
  older: Schemata,
  newer: Schemata,
  mode: CompatibilityMode,
) => Promise<ComparisonResult>;

/**
 * What a schema would break of an action, under a rule. A break with several revisions is reported once, for the newest of
 * them. When not all revisions could be compared, a break of each side says which were not.
 * @param stepsOverAll for all revisions together; the result does not depend on the machine
 */
export async function breaksOf(
  catalog: CatalogStore,
  compare: Compare,
  stored: StoredAction,
  next: Schemata,
  { compatibility: mode, compatibility_against: against }: CompatibilityRule,
  stepsOverAll = STEPS_OVER_ALL,
): Promise<readonly RevisionBreak[]> {
  if (mode === "none") return [];
  const byKey = new Map<string, RevisionBreak>();
  const nextLength = JSON.stringify(next).length;
  let remaining = stepsOverAll;
  const revisions = against === "last" ? [stored] : revisionsOf(catalog, stored.action);
  for await (const { revision, schemata } of revisions) {
    if (remaining <= 0 || byKey.size >= CHECK_LIMITS.breaks) {
      return [...byKey.values(), ...sidesOf(mode).map((side) => revisionsLeftOut(side, revision))];
    }
    const { breaks, steps } = await compare(schemata, next, mode);
    remaining -= STEPS_PER_COMPARISON + JSON.stringify(schemata).length + nextLength + steps;
    for (const one of breaks) {
      const key = keyOf(one);
      if (byKey.has(key)) continue;
      const message =
        revision === stored.revision ? one.message : `Against revision ${revision}: ${one.message}`;
      byKey.set(key, { revision, ...one, message });
    }
  }
  return [...byKey.values()];
}

function keyOf({ side, pointer, message }: SchemaBreak): string {
  return JSON.stringify([side, pointer, message]);
}

/** Stands for the revisions up to this one. */
function revisionsLeftOut(side: SchemaBreak["side"], revision: number): RevisionBreak {
  const which = revision === 1 ? "Revision 1 was" : `Revisions 1 to ${revision} were`;
  const most = CHECK_LIMITS.breaks.toLocaleString("en");
  const change = `${which} not compared: it takes too many steps, or later ones have ${most} breaks already.`;
  const remedy =
    "Fix what else breaks and check again, create the schema as a new version of the action, or have it compared with the last revision only (compatibility_against: last).";
  return { revision, ...notCompared(side, change, remedy) };
}

/** How a schema comes to replace the one in force. Breaks that were allowed are counted too. */
async function admissionOf(
  compare: Compare,
  stored: StoredAction,
  next: Schemata,
  compatibility: CompatibilityMode,
): Promise<Admission> {
  const isUnbroken = compatibility === "full" || isDeepStrictEqual(stored.schemata, next);
  if (isUnbroken) return { compatibility, breaks: 0 };
  const { total: breaks } = await compare(stored.schemata, next, "full");
  return { compatibility, breaks };
}

/** Newest first. */
async function* revisionsOf(catalog: CatalogStore, action: string): AsyncGenerator<ActionRevision> {
  const pages = pagesOf(READ_SCHEMAS, (last: ActionRevision | undefined) =>
    catalog.listRevisions(omitUndefined({ action, limit: READ_SCHEMAS, after: last?.revision })),
  );
  for await (const page of pages) yield* page;
}
