import type { ActionSettings, ActionUpdate } from "../domain/action.ts";
import { invalidField } from "../domain/error.ts";
import type { StoredAction } from "../store/actions.ts";
import type { Store } from "../store/store.ts";
import type { Access } from "./access.ts";
import { notFound } from "./answers.ts";
import { chainFrom } from "./successors.ts";

const SETTINGS = ["compatibility", "compatibility_against", "deprecated", "retired", "successor"] as const;

/**
 * The action's settings after an update.
 * @throws `invalid` for a successor that cannot be, `not_found` for one that is not there
 */
export async function settingsAfter(
  store: Store,
  access: Access,
  stored: StoredAction,
  body: ActionUpdate,
): Promise<ActionSettings> {
  const { compatibility = stored.compatibility, compatibility_against = stored.compatibility_against } = body;
  const { deprecated = stored.deprecated, retired = stored.retired } = body;
  const settings = { compatibility, compatibility_against, deprecated, retired };
  if (!deprecated && !retired) {
    if (body.successor === undefined || body.successor === null) return { ...settings, successor: null };
    throw invalidField(
      "successor",
      "is only for an action that is deprecated or retired; set one of them as well, or leave it out",
      body.successor,
    );
  }
  const { successor = stored.successor } = body;
  if (successor !== null && successor !== stored.successor) {
    await checkSuccessor(store, access, stored, successor);
  }
  return { ...settings, successor };
}

async function checkSuccessor(
  store: Store,
  access: Access,
  { action }: StoredAction,
  successor: string,
): Promise<void> {
  if (successor === action) throw invalidField("successor", "must be another action", successor);
  const found = await store.findAction(successor);
  // Whoever may neither read nor change it does not learn that it is there.
  const reach = ["read", "write"] as const;
  if (found === undefined || !reach.some((scope) => access.allows(scope, found.application))) {
    throw notFound("action", successor, "successor");
  }
  const refuse = (why: string): never => {
    throw invalidField("successor", `${why}; name another, or none`, successor);
  };
  if (found.isBuiltIn) refuse("tells of evreg itself, so nobody can publish to it");
  if (found.retired) refuse("is retired, so nobody can publish to it");
  for await (const next of chainFrom(store, found.successor)) {
    if (next.action === action) refuse(`leads back to ${action}`);
  }
}

/** Those of the settings that differ from what is stored; `undefined` when none does. */
export function changedSettings(
  stored: ActionSettings,
  settings: ActionSettings,
): Partial<ActionSettings> | undefined {
  const changed = SETTINGS.filter((name) => settings[name] !== stored[name]);
  if (changed.length === 0) return undefined;
  return Object.fromEntries(changed.map((name) => [name, settings[name]]));
}
