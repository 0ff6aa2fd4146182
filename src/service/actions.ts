import {
  type Action,
  ACTION_QUERY,
  ACTION_UPDATE,
  ACTION_UPDATE_QUERY,
  type ActionRevision,
  type ActionUpdate,
  NEW_ACTION,
  type NewAction,
  REVISION_LIMITS,
  REVISION_QUERY,
  type RevisionQuery,
  SCHEMA_CANDIDATE,
  type SchemaCandidate,
} from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { checkActionName, checkLabel, checkNewActionName } from "../domain/names.ts";
import type { ActionsPort } from "../evreg.ts";
import { MAX_FAILURES } from "../schema/limits.ts";
import type { RevisionSelection } from "../store/catalog.ts";
import { type Compare, updateAction } from "./action-update.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { checkNewEvent } from "./publisher.ts";
import {
  actionOf,
  allOf,
  checkId,
  checkQuery,
  finder,
  missingAction,
  omitUndefined,
  pagesOf,
  readBody,
  shownFailures,
  takesNoEvents,
} from "./requests.ts";

/** Schemas read at once, each of up to 256 KiB, one of which may take the thread 5 ms. */
const READ_SCHEMAS = 3;

/** All actions, by name. */
export function actionPages(
  { store }: Pick<ServiceContext, "store">,
  access: Access,
  query: { application?: string },
): AsyncIterable<readonly Action[]> {
  const applications = access.readable(query.application);
  checkQuery(ACTION_QUERY, query);
  return pagesOf(READ_SCHEMAS, (last: Action | undefined) =>
    store.catalog.listActions(omitUndefined({ applications, after: last?.action, limit: READ_SCHEMAS })),
  );
}

/** An action's revisions, newest first. */
export async function* revisionPages(
  { store }: Pick<ServiceContext, "store">,
  access: Access,
  name: string,
  query: RevisionQuery,
): AsyncGenerator<readonly ActionRevision[], void, void> {
  const { limit = REVISION_LIMITS.listDefault, after } = checkQuery(REVISION_QUERY, query);
  const { action } = await actionFinder(store, access).readable(name);
  yield* pagesOf(READ_SCHEMAS, async (last: ActionRevision | undefined, count: number) => {
    const page = { action, limit: Math.min(READ_SCHEMAS, limit - count), after: last?.revision ?? after };
    return page.limit === 0 ? [] : store.catalog.listRevisions(omitUndefined<RevisionSelection>(page));
  });
}

const actionFinder = (store: ServiceContext["store"], access: Access) =>
  finder(
    access,
    "action",
    (name: string) => store.catalog.findAction(name),
    (name) => missingAction(store.catalog, access, name),
  );

export function actionsPort(context: ServiceContext, access: Access): ActionsPort {
  const { store, clock, actions, payloads, storedEvents, schemaChecks, schemaProducts } = context;
  const { caller } = access;

  const { readable } = actionFinder(store, access);

  const revisionOf = async (action: string, revision: number): Promise<ActionRevision> => {
    const [record] = await store.catalog.listRevisions({ action, limit: 1, after: revision + 1 });
    if (record?.revision !== revision) {
      throw new EvregError("not_found", `There is no revision of ${action} with the number ${revision}.`);
    }
    return record;
  };

  const comparing =
    (signal: AbortSignal | undefined): Compare =>
    (older, newer, mode) =>
      schemaProducts.make("comparison", { older, newer, mode }, caller, signal);

  return {
    async list(query = {}) {
      return { data: await allOf(actionPages(context, access, query)) };
    },
    async create(input, signal) {
      access.requireSome("write");
      const checks = { action: checkNewActionName, application: checkLabel };
      const record = readBody<NewAction>(NEW_ACTION, input, checks);
      const { action, application, schemata } = record;
      access.require("write", application);
      const warnings = await schemaChecks.warnings("schemata", schemata, caller, signal);
      const created = await store.catalog
        .createAction(record, clock.now(), access.actor)
        .catch((error: unknown) => {
          throw access.allows("read") ? error : withoutOwner(error, action);
        });
      actions.changed();
      return { data: actionOf(created), meta: { warnings } };
    },
    async get(name) {
      return { data: actionOf(await readable(name)) };
    },
    async update(name, input, options = {}, signal) {
      access.requireSome("write");
      const forced = checkQuery(ACTION_UPDATE_QUERY, options).compatibility === "none";
      const checks = { application: checkLabel, successor: checkActionName };
      const body = readBody<ActionUpdate>(ACTION_UPDATE, input, checks);
      const warnings =
        body.schemata === undefined
          ? []
          : await schemaChecks.warnings("schemata", body.schemata, caller, signal);
      const update = { body, forced, compare: comparing(signal) };
      const data = actionOf(await updateAction(context, access, name, update));
      return { data, meta: { warnings } };
    },
    async revisions(name, query = {}) {
      return { data: await allOf(revisionPages(context, access, name, query)) };
    },
    async revision(name, revision) {
      const { action } = await readable(name);
      return { data: await revisionOf(action, checkId(revision, "revision")) };
    },
    async check(name, candidate, signal) {
      const stored = await readable(name);
      const { schemata, mode, revision, replay = 0 } = readBody<SchemaCandidate>(SCHEMA_CANDIDATE, candidate);
      const warnings = await schemaChecks.warnings("schemata", schemata, caller, signal);
      const before = revision === undefined ? stored : await revisionOf(stored.action, revision);
      const breaks = await comparing(signal)(before.schemata, schemata, mode ?? stored.compatibility);
      const check = { action: stored.action, schemata, maxEvents: replay };
      const checked = replay === 0 ? null : await storedEvents.check(check, caller, signal);
      return { data: { compatible: breaks.length === 0, breaks, warnings, replay: checked } };
    },
    async validate(name, payload, signal) {
      if (!access.allowsSome("publish")) access.requireSome("read");
      checkNewEvent({ action: name, payload }, context.limits.payloadBytes);
      const action = actions.get(name) ?? (await actions.load(name));
      const isVisible =
        action !== undefined &&
        (access.allows("read", action.application) || access.allows("publish", action.application));
      if (!isVisible) throw await missingAction(store.catalog, access, name);
      if (!action.takesEvents) throw takesNoEvents(name, action);
      await payloads.pause();
      const asker = { caller, gone: signal };
      const failure = await payloads.failureOf(action, payload, asker, MAX_FAILURES);
      const errors = failure === undefined ? [] : shownFailures(failure);
      return { data: { action: name, revision: action.revision, valid: failure === undefined, errors } };
    },
    async sample(name) {
      const { action, revision, schemata } = await readable(name);
      const payload = await schemaProducts.make("sample", schemata, caller);
      if (payload === undefined) throw noSample(action);
      return { data: { action, revision, payload } };
    },
  };
}

function noSample(action: string): EvregError {
  const message = `No payload that conforms to the schema of ${action} was found. Put one into the schema as an example ("examples": [{…}]), at its root or where it is hard to meet, or write the payload yourself.`;
  return new EvregError("invalid", message, { action });
}

/** The store's message names the owner of a name that is taken, which not everyone may know. */
function withoutOwner(error: unknown, action: string): unknown {
  if (!(error instanceof EvregError) || error.code !== "conflict") return error;
  const message = "there is an action of this name already; choose another name";
  return new EvregError("conflict", `${action}: ${message}.`, { field: "action", message, value: action });
}
