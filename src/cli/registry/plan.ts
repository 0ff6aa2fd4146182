import { isDeepStrictEqual } from "node:util";
import { type Action, type RevisionBreak, type SchemaWarning } from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { isPattern } from "../../domain/names.ts";
import type { RetryDefaults } from "../../domain/retry.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { checkSchema } from "../../schema/check.ts";
import { pathNamed } from "../../json/field-path.ts";
import { pointerSteps } from "../../json/pointer.ts";
import { type Declarations, type Declared, keyOf, nameOf } from "./declarations.ts";
import type { Problem } from "./documents.ts";
import { ACTION, NEW_RECORD_DEFAULTS, type DeclaredKind, SUBSCRIPTION, type Values } from "./members.ts";

/** The existing records. */
export interface Registry {
  readonly actions: readonly Action[];
  readonly subscriptions: readonly Subscription[];
  /** What goes for subscriptions that say nothing else; those of the specification, if the server does not tell. */
  readonly retries?: RetryDefaults | undefined;
}

export interface Change {
  readonly member: string;
  /** Absent for what is new. */
  readonly from?: unknown;
  readonly to: unknown;
}

/** One record that differs from its declaration, and what changes it. */
export interface Step {
  readonly operation: "create" | "change" | "delete";
  readonly noun: DeclaredKind["noun"];
  /** The name for a person: `billing/invoices to order.created`. */
  readonly name: string;
  /** The members of its identity. */
  readonly identity: Values;
  /** The rowid of the existing record. */
  readonly rowid?: number;
  /** The members to send; of a new record all that are declared, with its identity. Empty where only the state changes. */
  readonly body: Values;
  /** What is sent of an action when all actions exist. */
  readonly state: Values;
  /** The value of a bearer that is `own`; sent with the body and never shown. */
  readonly bearerToken?: string;
  readonly changes: readonly Change[];
  /** What has no effect in its schema or its filter. */
  readonly warnings: readonly PlacedWarning[];
  /** Why the changed schema would break someone; `withBreaks` adds them. */
  readonly breaks: readonly RevisionBreak[];
  /** A name under which it would break nobody. */
  readonly suggestion?: string;
}

export interface Plan {
  /** Actions first, as subscriptions need them; what is deleted comes last. */
  readonly steps: readonly Step[];
  /** Records that are as declared. */
  readonly unchanged: number;
  /** Existing records of the applications in the files that the files do not declare. Actions are never deleted. */
  readonly undeclared: { readonly actions: readonly string[]; readonly subscriptions: readonly string[] };
  /** Declarations that the existing records do not allow. */
  readonly problems: readonly Problem[];
}

/**
 * The steps from the existing records to the declared ones. A pure function: the same input has the same plan, in the
 * order of names.
 * @param options `prune`: subscriptions that are not declared are deleted
 */
export function planFor(
  declared: Declarations,
  registry: Registry,
  { prune }: { readonly prune: boolean },
): Plan {
  const existing = {
    actions: registry.actions as unknown as readonly Values[],
    subscriptions: registry.subscriptions as unknown as readonly Values[],
  };
  const problems = stateProblems(declared.actions, registry.actions);
  const actions = stepsFor(ACTION, declared.actions, existing.actions, problems, registry.retries);
  const declaredActions = declared.actions.map(({ values }) => values);
  const known = new Set(
    // A token may read a subscription and not the action it is to.
    [...existing.actions, ...existing.subscriptions, ...declaredActions].map((record) => record["action"]),
  );
  for (const { values, place } of declared.subscriptions) {
    if (!isPattern(String(values["action"])) && !known.has(values["action"]))
      problems.push({ place: place(["action"]), message: unknownAction(values["action"]) });
  }
  const subscriptions = stepsFor(
    SUBSCRIPTION,
    declared.subscriptions,
    existing.subscriptions,
    problems,
    registry.retries,
  );
  const applications = new Set(
    [...declared.actions, ...declared.subscriptions].map(({ values }) => values["application"]),
  );
  const undeclaredIn = (kind: DeclaredKind) => {
    const keys = new Set(declared[kind.list].map(({ values }) => keyOf(kind, values)));
    return existing[kind.list]
      .filter((record) => applications.has(record["application"]) && !keys.has(keyOf(kind, record)))
      .toSorted((a, b) => (nameOf(kind, a) < nameOf(kind, b) ? -1 : 1));
  };
  const undeclared = undeclaredIn(SUBSCRIPTION);
  const deletions = undeclared.map((record) => stepOf(SUBSCRIPTION, "delete", record, []));
  const changing = [...actions, ...subscriptions];
  return {
    steps: prune ? [...changing, ...deletions] : changing,
    unchanged: declared.actions.length + declared.subscriptions.length - changing.length,
    undeclared: {
      actions: undeclaredIn(ACTION).map((record) => nameOf(ACTION, record)),
      subscriptions: undeclared.map((record) => nameOf(SUBSCRIPTION, record)),
    },
    problems,
  };
}

function unknownAction(name: unknown): string {
  return `there is no action ${String(name)}, or none that this token may read, and no file declares it`;
}

function stepsFor(
  kind: DeclaredKind,
  declared: readonly Declared[],
  existing: readonly Values[],
  problems: Problem[],
  retries: RetryDefaults | undefined,
): Step[] {
  const byKey = new Map(existing.map((record) => [keyOf(kind, record), record]));
  const steps: Step[] = [];
  for (const record of declared) {
    const present = byKey.get(keyOf(kind, record.values));
    const changes = changesOf(record, present, retries);
    if (changes.length === 0) continue;
    const { problems: wrong, warnings } = schemaProblems(changed(changes), record);
    problems.push(...wrong);
    if (wrong.length > 0) continue;
    const made = present === undefined ? creationOf(record, changes) : changeOf(record, changes, present);
    const step = { ...made, warnings };
    if (step.body["bearer"] === "own" && step.bearerToken === undefined) {
      const message = `${step.name} has no value of its own for bearer yet; name the file that holds it as bearer_token_file`;
      problems.push({ place: record.place(["bearer"]), message });
    }
    steps.push(step);
  }
  return steps.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function changesOf(
  { kind, values }: Declared,
  existing: Values | undefined,
  retries: RetryDefaults | undefined,
): Change[] {
  const changes: Change[] = [];
  for (const [member, defaultOf] of kind.members) {
    const isOpen = values[member] === undefined && existing !== undefined;
    const to = isOpen ? defaultOf(values, retries) : values[member];
    if (to === undefined || (existing !== undefined && isDeepStrictEqual(existing[member], to))) continue;
    changes.push(existing === undefined ? { member, to } : { member, from: existing[member], to });
  }
  return changes;
}

function changed(changes: readonly Change[]): Values {
  return Object.fromEntries(changes.map(({ member, to }) => [member, to]));
}

function creationOf({ kind, values, bearerToken }: Declared, changes: readonly Change[]): Step {
  const { state, body } = splitState(values);
  // A new action has all else anyway.
  const differing = Object.entries(state).filter(([name, value]) => value !== NEW_RECORD_DEFAULTS[name]);
  const step = { ...stepOf(kind, "create", values, changes), body, state: Object.fromEntries(differing) };
  return bearerToken === undefined ? step : { ...step, bearerToken };
}

function changeOf({ kind, bearerToken }: Declared, changes: readonly Change[], existing: Values): Step {
  const { state, body } = splitState(changed(changes));
  const step = { ...stepOf(kind, "change", existing, changes), body, state };
  if (kind === ACTION) {
    if (Object.keys(body).length === 0) return step;
    // The request needs the schema, and the revision that was planned upon, so that no other change is undone unseen.
    const { schemata, revision } = existing;
    return { ...step, body: { schemata, revision, ...body } };
  }
  // An existing bearer value stays: no answer contains it, so it cannot be compared with a file.
  return body["bearer"] === "own" && bearerToken !== undefined ? { ...step, bearerToken } : step;
}

function stepOf(
  kind: DeclaredKind,
  operation: Step["operation"],
  values: Values,
  changes: readonly Change[],
): Step {
  return {
    operation,
    noun: kind.noun,
    name: nameOf(kind, values),
    identity: Object.fromEntries(kind.identity.map((name) => [name, values[name]])),
    ...(operation === "create" ? {} : { rowid: values["rowid"] as number }),
    body: {},
    state: {},
    changes,
    breaks: [],
    warnings: [],
  };
}

/**
 * The members that end an action or name its successor. They are sent when all actions exist, as a
 * successor may be created by the same files.
 */
const STATE = new Set(["deprecated", "retired", "successor"]);

function splitState(values: Values): { readonly state: Values; readonly body: Values } {
  const entries = Object.entries(values);
  return {
    state: Object.fromEntries(entries.filter(([name]) => STATE.has(name))),
    body: Object.fromEntries(entries.filter(([name]) => !STATE.has(name))),
  };
}

/** Successors that the service would refuse. What it alone can see, such as one that leads back, is left to it. */
function stateProblems(declared: readonly Declared[], existing: readonly Action[]): Problem[] {
  const before = new Map(existing.map((action) => [action.action, action]));
  const names = new Set<unknown>([...before.keys(), ...declared.map(({ values }) => values["action"])]);
  return declared.flatMap(({ values, place }) => {
    const { action, successor } = values;
    if (typeof successor !== "string") return [];
    const wrong = (message: string): Problem[] => [{ place: place(["successor"]), message }];
    const present = before.get(String(action));
    const { deprecated = present?.deprecated, retired = present?.retired } = values;
    if (deprecated !== true && retired !== true) {
      return wrong(
        "successor is only for an action that is deprecated or retired; declare one of them as well",
      );
    }
    if (successor === action) return wrong("successor must be another action");
    return names.has(successor) ? [] : wrong(unknownAction(successor));
  });
}

/**
 * The steps with a state, in such an order that no successor is retired when it is named: actions that are in use again come
 * first, then each action after those that name it.
 */
export function stateSteps(steps: readonly Step[]): Step[] {
  const changing = steps.filter(({ state }) => Object.keys(state).length > 0);
  const inUse = changing.filter(({ state }) => (state["successor"] ?? null) === null && !isEnded(state));
  return [...inUse, ...namingFirst(changing.filter((step) => !inUse.includes(step)))];
}

function isEnded(state: Values): boolean {
  return state["deprecated"] === true || state["retired"] === true;
}

function namingFirst(steps: readonly Step[]): Step[] {
  const ordered = new Set<Step>();
  const open = new Set<Step>();
  const add = (step: Step): void => {
    if (ordered.has(step) || open.has(step)) return;
    open.add(step);
    for (const other of steps) if (other.state["successor"] === step.name) add(other);
    ordered.add(step);
  };
  for (const step of steps) add(step);
  return [...ordered];
}

/** The members that are JSON Schemas. */
const SCHEMAS = ["schemata", "filter"] as const;

/** What has no effect in a schema, and where in the files. */
interface PlacedWarning extends SchemaWarning {
  readonly place: string;
}

/**
 * Checks the schemas that are to be sent. Those that the service has already are not checked again: compiling hundreds
 * takes longer than all the rest of a plan that changes nothing.
 */
function schemaProblems(
  sent: Values,
  { place }: Declared,
): { readonly problems: readonly Problem[]; readonly warnings: readonly PlacedWarning[] } {
  const problems: Problem[] = [];
  const warnings: PlacedWarning[] = [];
  for (const member of SCHEMAS) {
    const schema = sent[member] ?? null;
    if (schema === null) continue;
    try {
      for (const { pointer, message } of checkSchema(schema, member).warnings) {
        warnings.push({ pointer, message, place: place([member, ...pointerSteps(pointer)]) });
      }
    } catch (error) {
      if (!(error instanceof EvregError)) throw error;
      const { field, message } = error.details;
      const name = String(field);
      problems.push({ place: place(pathNamed(name)), message: `${name}: ${String(message)}` });
    }
  }
  return { problems, warnings };
}
