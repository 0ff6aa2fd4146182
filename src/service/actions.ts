import { isDeepStrictEqual } from "node:util";
import type {
  Action,
  ActionUpdate,
  NewAction,
  Schemata,
  SchemaWarning,
  WarningMeta,
} from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { checkActionName, checkLabel, nextVersionName } from "../domain/names.ts";
import { checkQuery } from "../domain/query.ts";
import { ACTION_QUERY, ACTION_UPDATE, ACTION_UPDATE_QUERY, NEW_ACTION } from "../domain/requests.ts";
import type { ActionsPort, Answer } from "../evreg.ts";
import { checkSchema } from "../schema/check.ts";
import { compare } from "../schema/compatibility/compare.ts";
import type { Store, StoredAction } from "../store/store.ts";
import type { Access } from "./access.ts";
import { given, notFound } from "./answers.ts";
import { readBody } from "./bodies.ts";
import type { ServiceContext } from "./context.ts";

/** How often an update follows others that come before it. */
const MAX_TRIES = 20;
/** How many versions a suggested name may lie ahead. */
const MAX_VERSIONS_TRIED = 50;

export function actionsPort(context: ServiceContext, access: Access): ActionsPort {
  const { store, clock, actions } = context;

  /** One step of an update; `stale` when another came before it. */
  async function revise(
    stored: StoredAction,
    body: ActionUpdate,
    forced: boolean,
  ): Promise<Action | "stale"> {
    const { application = stored.application, schemata } = body;
    access.require("write", stored.application);
    access.require("write", application);
    if (forced) access.require("admin", stored.application);
    checkAgreement(stored, body);
    const sameSchema = isDeepStrictEqual(stored.schemata, schemata);
    if (sameSchema && application === stored.application) return actionOf(stored);
    const { breaks: changes } = compare(stored.schemata, schemata, {
      mode: sameSchema || forced ? "none" : "full",
    });
    if (changes.length > 0) {
      const suggestion = await freeName(store, stored.action);
      throw new EvregError(
        "conflict",
        `This schema would break ${stored.action} for someone. Create it as ${suggestion} instead, and publish to both for a while.`,
        { changes, suggestion },
      );
    }
    const revision = { action: stored.action, schemata, application, basedOnRevision: stored.revision };
    try {
      const revised = await store.reviseAction(revision, clock.now());
      if (revised === undefined) throw notFound("action", stored.action);
      return revised;
    } finally {
      actions.forget(stored.action);
    }
  }

  return {
    async list(query = {}) {
      const applications = access.readable();
      const { application } = checkQuery(ACTION_QUERY, query);
      return { data: await store.listActions(given({ application, applications })) };
    },
    async create(input) {
      access.requireSome("write");
      const checks = { action: checkActionName, application: checkLabel };
      const { action, application, schemata } = readBody(NEW_ACTION, input, checks) as NewAction;
      access.require("write", application);
      const warnings = warningsFor(schemata);
      const created = await store
        .createAction({ action, application, schemata }, clock.now())
        .catch((error: unknown) => {
          throw access.allows("read") ? error : withoutOwner(error, action);
        });
      actions.forget(action);
      return withWarnings(created, warnings);
    },
    async get(name) {
      access.requireSome("read");
      const stored = await store.findAction(name);
      if (stored === undefined || !access.allows("read", stored.application)) throw notFound("action", name);
      return { data: actionOf(stored) };
    },
    async update(name, input, options = {}) {
      access.requireSome("write");
      const forced = checkQuery(ACTION_UPDATE_QUERY, options).compatibility === "none";
      const body = readBody(ACTION_UPDATE, input, { application: checkLabel }) as ActionUpdate;
      const warnings = warningsFor(body.schemata);
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const stored = await store.findAction(name);
        if (stored === undefined) throw notFound("action", name);
        const revised = await revise(stored, body, forced);
        if (revised !== "stale") return withWarnings(revised, warnings);
      }
      throw new EvregError(
        "unavailable",
        `Others kept changing ${name} at the same time. Nothing was applied; look at it again, then try again.`,
      );
    },
  };
}

/** @throws `invalid` for what is no schema */
function warningsFor(schemata: Schemata): SchemaWarning[] {
  const { warnings } = checkSchema(schemata);
  const { $ref: reference, type } = schemata;
  // Beside a $ref the type is ignored, which is a warning of its own.
  if (type === undefined || reference !== undefined || [type].flat().includes("object")) return warnings;
  const message = `every payload is an object, so none conforms to the type ${JSON.stringify(type)} and nothing can be published; make it "object"`;
  return [{ pointer: "/type", message }, ...warnings];
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

/** A name is taken by whoever has it; who that is, is not for everyone to know. */
function withoutOwner(error: unknown, action: string): unknown {
  if (!(error instanceof EvregError) || error.code !== "conflict") return error;
  const message = "there is an action of this name already; choose another name";
  return new EvregError("conflict", `${action}: ${message}.`, { field: "action", message, value: action });
}

function actionOf({ rowid, action, application, schemata, revision, timestamped }: StoredAction): Action {
  return { rowid, action, application, schemata, revision, timestamped };
}

function withWarnings(data: Action, warnings: WarningMeta["warnings"]): Answer<Action, WarningMeta> {
  return { data, meta: { warnings } };
}
