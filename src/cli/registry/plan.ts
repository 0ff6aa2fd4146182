import { isDeepStrictEqual } from "node:util";
import {
  type Action,
  payloadTypeWarnings,
  type RevisionBreak,
  type Schemata,
  type SchemaWarning,
} from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { checkSchema } from "../../schema/check.ts";
import { pathNamed, pointerSteps } from "../../schema/pointers.ts";
import { type Declarations, type Declared, keyOf, nameOf } from "./declarations.ts";
import type { Problem } from "./documents.ts";
import { ACTION, NEW_RECORD_DEFAULTS, type DeclaredKind, SUBSCRIPTION, type Values } from "./members.ts";

/** What there is. */
export interface Registry {
  readonly actions: readonly Action[];
  readonly subscriptions: readonly Subscription[];
}

export interface Change {
  readonly member: string;
  /** Absent for what is new. */
  readonly from?: unknown;
  readonly to: unknown;
}

/** One record that is not as declared, and what makes it so. */
export interface Step {
  readonly operation: "create" | "change" | "delete";
  readonly noun: DeclaredKind["noun"];
  /** For a person: `billing/invoices to order.created`. */
  readonly name: string;
  /** The members of its identity. */
  readonly identity: Values;
  /** Of the record that is there. */
  readonly rowid?: number;
  /** The members to send; of a new record all that are declared, with its identity. Nothing where only the state changes. */
  readonly body: Values;
  /** Of an action, what is sent when all actions are there. */
  readonly state: Values;
  /** What a bearer's `own` value is to be; sent beside the body and never shown. */
  readonly bearerToken?: string;
  readonly changes: readonly Change[];
  /** What its schema, or its filter, would say to no effect. */
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
  /** What there is of the applications that the files name, and is not in them. Actions are never deleted. */
  readonly undeclared: { readonly actions: readonly string[]; readonly subscriptions: readonly string[] };
  /** Declarations that cannot be met by what there is. */
  readonly problems: readonly Problem[];
}

/**
 * What leads from what there is to what is declared. A pure function: the same input has the same plan, in the order of
 * names.
 * @param options `prune`: subscriptions that are not declared are deleted
 */
export function planFor(
  declared: Declarations,
  registry: Registry,
  { prune }: { readonly prune: boolean },
): Plan {
  const problems: Problem[] = [];
  problems.push(...stateProblems(declared.actions, registry.actions));
  const actions = stepsFor(ACTION, declared.actions, registry.actions, problems);
  const known = new Set(
    // A token may read a subscription and not the action it is to.
    [...registry.actions, ...registry.subscriptions, ...declared.actions.map(({ values }) => values)].map(
      (record): unknown => (record as { action?: unknown }).action,
    ),
  );
  for (const { values, place } of declared.subscriptions) {
    if (known.has(values["action"])) continue;
    const message = `there is no action ${String(values["action"])}, or none that this token may read, and no file declares it`;
    problems.push({ place: place(["action"]), message });
  }
  const subscriptions = stepsFor(SUBSCRIPTION, declared.subscriptions, registry.subscriptions, problems);
  const named = new Set(
    [...declared.actions, ...declared.subscriptions].map(({ values }) => values["application"]),
  );
  const undeclared = {
    actions: undeclaredRecords(ACTION, declared.actions, registry.actions, named),
    subscriptions: undeclaredRecords(SUBSCRIPTION, declared.subscriptions, registry.subscriptions, named),
  };
  const deletions = prune ? undeclared.subscriptions.map((record) => deletionOf(record)) : [];
  const changing = [...actions, ...subscriptions];
  return {
    steps: [...changing, ...deletions],
    unchanged: declared.actions.length + declared.subscriptions.length - changing.length,
    undeclared: {
      actions: undeclared.actions.map((record) => nameOf(ACTION, record)),
      subscriptions: undeclared.subscriptions.map((record) => nameOf(SUBSCRIPTION, record)),
    },
    problems,
  };
}

function stepsFor(
  kind: DeclaredKind,
  declared: readonly Declared[],
  there: readonly (Action | Subscription)[],
  problems: Problem[],
): Step[] {
  const byKey = new Map(there.map((record) => [keyOf(kind, valuesOf(record)), record]));
  const steps: Step[] = [];
  for (const record of declared) {
    const present = byKey.get(keyOf(kind, record.values));
    const changes = present === undefined ? additions(record) : differences(record, valuesOf(present));
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

function additions({ kind, values }: Declared): Change[] {
  return [...kind.members.keys()]
    .filter((member) => values[member] !== undefined)
    .map((member) => ({ member, to: values[member] }));
}

function differences({ kind, values }: Declared, there: Values): Change[] {
  const changes: Change[] = [];
  for (const [member, defaultOf] of kind.members) {
    const to = values[member] === undefined ? defaultOf(values) : values[member];
    if (to === undefined || isDeepStrictEqual(there[member], to)) continue;
    changes.push({ member, from: there[member], to });
  }
  return changes;
}

/** Of a new action's state what is not so anyway. */
function differing(state: Values): Values {
  return Object.fromEntries(
    Object.entries(state).filter(([name, value]) => value !== NEW_RECORD_DEFAULTS[name]),
  );
}

function changed(changes: readonly Change[]): Values {
  return Object.fromEntries(changes.map(({ member, to }) => [member, to]));
}

function creationOf({ kind, values, bearerToken }: Declared, changes: readonly Change[]): Step {
  const { state, others: body } = splitState(values);
  const step = { ...stepOf(kind, "create", values), body, state: differing(state), changes };
  return bearerToken === undefined ? step : { ...step, bearerToken };
}

function changeOf(
  { kind, bearerToken }: Declared,
  changes: readonly Change[],
  present: Action | Subscription,
): Step {
  const step = { ...stepOf(kind, "change", valuesOf(present)), rowid: present.rowid, changes };
  const { state, others: body } = splitState(changed(changes));
  if (kind === ACTION) {
    if (Object.keys(body).length === 0) return { ...step, body, state };
    // With the schema in any case, as the request needs it, and the revision planned upon, so that none is undone unseen.
    const { schemata, revision } = present as Action;
    return { ...step, body: { schemata, revision, ...body }, state };
  }
  // An existing bearer value stays: no answer contains it, so it cannot be compared with a file.
  const sent = body["bearer"] === "own" && bearerToken !== undefined ? { bearerToken } : {};
  return { ...step, body, ...sent };
}

function deletionOf(present: Values): Step {
  const rowid = (present as unknown as Subscription).rowid;
  return { ...stepOf(SUBSCRIPTION, "delete", present), rowid, body: {}, changes: [] };
}

function stepOf(
  kind: DeclaredKind,
  operation: Step["operation"],
  values: Values,
): Pick<Step, "operation" | "noun" | "name" | "identity" | "state" | "breaks" | "warnings"> {
  const identity = Object.fromEntries(kind.identity.map((name) => [name, values[name]]));
  return {
    operation,
    noun: kind.noun,
    name: nameOf(kind, values),
    identity,
    state: {},
    breaks: [],
    warnings: [],
  };
}

function undeclaredRecords(
  kind: DeclaredKind,
  declared: readonly Declared[],
  there: readonly (Action | Subscription)[],
  applications: ReadonlySet<unknown>,
): Values[] {
  const keys = new Set(declared.map(({ values }) => keyOf(kind, values)));
  return there
    .map(valuesOf)
    .filter((record) => applications.has(record["application"]) && !keys.has(keyOf(kind, record)))
    .toSorted((a, b) => (nameOf(kind, a) < nameOf(kind, b) ? -1 : 1));
}

function valuesOf(record: Action | Subscription): Values {
  return record as unknown as Values;
}

/**
 * The members that end an action or name its successor. They are sent when all actions exist, as a
 * successor may be created by the same files.
 */
const STATE = new Set(["deprecated", "retired", "successor"]);

function splitState(values: Values): { readonly state: Values; readonly others: Values } {
  const entries = Object.entries(values);
  return {
    state: Object.fromEntries(entries.filter(([name]) => STATE.has(name))),
    others: Object.fromEntries(entries.filter(([name]) => !STATE.has(name))),
  };
}

/** Successors that the service would refuse. What it alone can see, such as one that leads back, is left to it. */
function stateProblems(declared: readonly Declared[], there: readonly Action[]): Problem[] {
  const before = new Map(there.map((action) => [action.action, action]));
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
    if (names.has(successor)) return [];
    return wrong(
      `there is no action ${successor}, or none that this token may read, and no file declares it`,
    );
  });
}

/** One change of a state; they are made one after the other. */
interface StateCall {
  readonly step: Step;
  readonly body: Values;
  /** The step has no other. */
  readonly isLast: boolean;
}

/**
 * Such an order that no successor is retired, or leads back, when it is named: first what goes on again or has another
 * successor loses the one it has, then each action comes after those that name it.
 */
export function stateCalls(steps: readonly Step[]): StateCall[] {
  const changing = steps.filter(({ state }) => Object.keys(state).length > 0);
  const ended = changing.filter(({ state }) => state["deprecated"] !== true && state["retired"] !== true);
  const cleared = ended.filter(({ state }) => (state["successor"] ?? null) === null);
  const rest = changing.filter((step) => !cleared.includes(step));
  const losing = rest.filter(({ changes }) =>
    changes.some(({ member, from }) => member === "successor" && typeof from === "string"),
  );
  return [
    ...cleared.map((step) => ({ step, body: step.state, isLast: true })),
    ...losing.map((step) => ({ step, body: { successor: null }, isLast: false })),
    ...namingFirst(rest).map((step) => ({ step, body: step.state, isLast: true })),
  ];
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

/** What a schema says to no effect, and where in the files. */
interface PlacedWarning extends SchemaWarning {
  readonly place: string;
}

/**
 * What keeps the schemas that are to be sent from being some, and what they say to no effect. Those that the service has
 * already are not checked again: compiling hundreds takes longer than all the rest of a plan that changes nothing.
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
      const found = [
        ...payloadTypeWarnings(schema as Schemata, member),
        ...checkSchema(schema, member).warnings,
      ];
      warnings.push(
        ...found.map(({ pointer, message }) => ({
          pointer,
          message,
          place: place([member, ...pointerSteps(pointer)]),
        })),
      );
    } catch (error) {
      if (!(error instanceof EvregError)) throw error;
      const { field, message } = error.details;
      const name = String(field);
      problems.push({ place: place(pathNamed(name)), message: `${name}: ${String(message)}` });
    }
  }
  return { problems, warnings };
}
