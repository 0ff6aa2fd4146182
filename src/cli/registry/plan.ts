import { isDeepStrictEqual } from "node:util";
import {
  type Action,
  type CompatibilityMode,
  type SchemaBreak,
  type Schemata,
  type SchemaWarning,
} from "../../domain/action.ts";
import { checkNewActionName, isPattern, nextVersionName } from "../../domain/names.ts";
import type { RetryDefaults } from "../../domain/retry.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { ActionsPort } from "../../evreg.ts";
import { checkSchema, type FilteredAction } from "../../schema/check.ts";
import { pointerSteps } from "../../json/field-path.ts";
import { isOfListener } from "../listen/subscriptions.ts";
import { type Declarations, type Declared, keyOf, nameOf, problemOf } from "./declarations.ts";
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

/** One request, about a record that differs from its declaration. */
export interface Step {
  readonly operation: "create" | "change" | "delete";
  readonly noun: DeclaredKind["noun"];
  /** The name for a person: `billing/invoices to order.created`. */
  readonly name: string;
  /** The members of its identity. */
  readonly identity: Values;
  /** The rowid of the existing record. */
  readonly rowid?: number;
  /** The members to send; of a new record all that are declared, with its identity. */
  readonly body: Values;
  /** The value of a bearer that is `own`; sent with the body and never shown. */
  readonly bearerToken?: string;
  readonly changes: readonly Change[];
  /** What has no effect in its schema or its filter. */
  readonly warnings: readonly PlacedWarning[];
  /** Why the changed schema would break someone. */
  readonly breaks: readonly SchemaBreak[];
  /** A name under which it would break nobody. */
  readonly suggestion?: string;
}

export interface Plan {
  /** Actions first, as subscriptions need them, then how actions end; what is deleted comes last. */
  readonly steps: readonly Step[];
  /** Records that are as declared. */
  readonly unchanged: number;
  /** Existing records of the applications in the files that the files do not declare. Actions are never deleted. */
  readonly undeclared: { readonly actions: readonly string[]; readonly subscriptions: readonly string[] };
  /** Declarations that the existing records do not allow. */
  readonly problems: readonly Problem[];
}

/**
 * The steps from the existing records to the declared ones. The same input has the same plan, in the order of names.
 * @param port says what a changed schema would break
 * @param options `prune`: subscriptions that are not declared are deleted
 */
export async function planFor(
  declared: Declarations,
  registry: Registry,
  port: Pick<ActionsPort, "check">,
  { prune }: { readonly prune: boolean },
): Promise<Plan> {
  const existing: Readonly<Record<DeclaredKind["list"], readonly Values[]>> = registry;
  const problems: Problem[] = [];
  const actionsByName = new Map(
    [...existing.actions, ...declared.actions.map(({ values }) => values)].map((one) => [one["action"], one]),
  );
  // A token may read a subscription and not the action it is to.
  const subscribed = new Set(registry.subscriptions.map(({ action }) => action));
  for (const { values, place } of declared.subscriptions) {
    const action = String(values["action"]);
    if (isPattern(action) || actionsByName.has(action) || subscribed.has(action)) continue;
    const message = `there is no action ${action}, or none that this token may read, and no file declares it`;
    problems.push({ place: place(["action"]), message });
  }
  const stepsFor = (kind: DeclaredKind): Step[] => {
    const byKey = new Map(existing[kind.list].map((record) => [keyOf(kind, record), record]));
    return declared[kind.list]
      .flatMap((record) => {
        const { values } = record;
        const filtered = kind === SUBSCRIPTION ? actionsByName.get(values["action"]) : undefined;
        return stepsTo(record, byKey.get(keyOf(kind, values)), registry.retries, problems, filtered);
      })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  };
  const actions = stepsFor(ACTION);
  const bodies = actions.filter((step) => !isEnd(step));
  const changing = [...bodies, ...actions.filter(isEnd), ...stepsFor(SUBSCRIPTION)];

  const applications = new Set(
    [...declared.actions, ...declared.subscriptions].map(({ values }) => values["application"]),
  );
  const undeclaredIn = (kind: DeclaredKind) => {
    const keys = new Set(declared[kind.list].map(({ values }) => keyOf(kind, values)));
    return existing[kind.list]
      .filter((record) => applications.has(record["application"]) && !keys.has(keyOf(kind, record)))
      .toSorted((a, b) => (nameOf(kind, a) < nameOf(kind, b) ? -1 : 1));
  };
  // Those of `evreg listen` end by themselves.
  const undeclared = undeclaredIn(SUBSCRIPTION).filter((one) => !isOfListener(one as Subscription));
  const deletions = undeclared.map((record) => stepOf(SUBSCRIPTION, "delete", record, []));
  const changed = new Set(changing.map(({ noun, name }) => `${noun} ${name}`));
  const taken = new Set([...registry.actions.map(({ action }) => action), ...bodies.map(({ name }) => name)]);
  const steps: Step[] = [];
  for (const step of prune ? [...changing, ...deletions] : changing) {
    steps.push(problems.length > 0 ? step : await withBreaks(step, taken, port));
  }
  return {
    steps,
    unchanged: declared.actions.length + declared.subscriptions.length - changed.size,
    undeclared: {
      actions: undeclaredIn(ACTION).map((record) => nameOf(ACTION, record)),
      subscriptions: undeclared.map((record) => nameOf(SUBSCRIPTION, record)),
    },
    problems,
  };
}

/** The members that end an action or name its successor. They have a step of their own, as the same files may make the successor. */
const END = new Set(["deprecated", "retired", "successor"]);

function isEnd({ noun, operation, changes }: Step): boolean {
  return noun === "action" && operation === "change" && changes.every(({ member }) => END.has(member));
}

/**
 * The steps to one declared record: none where it is as declared.
 * @param filtered the action that a subscription is to
 */
function stepsTo(
  record: Declared,
  existing: Values | undefined,
  retries: RetryDefaults | undefined,
  problems: Problem[],
  filtered: Values | undefined,
): Step[] {
  const { kind, values, place, bearerToken } = record;
  const all = changesOf(record, existing, retries);
  const ends = all.filter(({ member }) => END.has(member));
  const changes = all.filter(({ member }) => !END.has(member));
  const steps: Step[] = [];
  if (existing === undefined || changes.length > 0) {
    if (existing === undefined && kind === ACTION) {
      collectRefusal(() => checkNewActionName("action", values["action"]), record, problems);
    }
    const warnings = schemaWarnings(changes, record, problems, filtered);
    const body = existing === undefined ? withoutEnds(values) : changedBody(kind, existing, changes);
    // A bearer value that is there already stays: no answer contains it, so it cannot be compared with a file.
    const token = body["bearer"] === "own" ? bearerToken : undefined;
    const step: Step = {
      ...stepOf(kind, existing === undefined ? "create" : "change", existing ?? values, changes),
      body,
      warnings,
      ...(token === undefined ? {} : { bearerToken: token }),
    };
    if (body["bearer"] === "own" && token === undefined) {
      const message = `${step.name} has no value of its own for bearer yet; name the file that holds it as bearer_token_file`;
      problems.push({ place: place(["bearer"]), message });
    }
    steps.push(step);
  }
  if (ends.length > 0)
    steps.push({ ...stepOf(kind, "change", existing ?? values, ends), body: valuesOf(ends) });
  return steps;
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
    // A new action is in use.
    const before = existing ?? (END.has(member) ? NEW_RECORD_DEFAULTS : undefined);
    if (to === undefined || (before !== undefined && isDeepStrictEqual(before[member], to))) continue;
    changes.push(before === undefined ? { member, to } : { member, from: before[member], to });
  }
  return changes;
}

function valuesOf(changes: readonly Change[]): Values {
  return Object.fromEntries(changes.map(({ member, to }) => [member, to]));
}

function withoutEnds(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !END.has(name)));
}

function changedBody(kind: DeclaredKind, existing: Values, changes: readonly Change[]): Values {
  if (kind !== ACTION) return valuesOf(changes);
  // The request needs the schema, and the revision that was planned upon, so that no other change is undone unseen.
  const { schemata, revision } = existing;
  return { schemata, revision, ...valuesOf(changes) };
}

function stepOf(
  kind: DeclaredKind,
  operation: Step["operation"],
  values: Values,
  changes: readonly Change[],
): Step {
  const { rowid } = values;
  return {
    operation,
    noun: kind.noun,
    name: nameOf(kind, values),
    identity: Object.fromEntries(kind.identity.map((name) => [name, values[name]])),
    ...(typeof rowid === "number" ? { rowid } : {}),
    body: {},
    changes,
    breaks: [],
    warnings: [],
  };
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
function schemaWarnings(
  changes: readonly Change[],
  record: Declared,
  problems: Problem[],
  filtered: Values | undefined,
): PlacedWarning[] {
  const warnings: PlacedWarning[] = [];
  const sent = valuesOf(changes);
  for (const member of SCHEMAS) {
    const schema = sent[member] ?? null;
    if (schema === null) continue;
    const check = () => {
      for (const { pointer, message } of checkSchema(schema, member, filtered as FilteredAction | undefined)
        .warnings) {
        warnings.push({ pointer, message, place: record.place([member, ...pointerSteps(pointer)]) });
      }
    };
    collectRefusal(check, record, problems);
  }
  return warnings;
}

/** Makes what a check of the service refuses a mistake in the file. */
function collectRefusal(check: () => unknown, { place }: Declared, problems: Problem[]): void {
  try {
    check();
  } catch (error) {
    problems.push(problemOf(error, place));
  }
}

/** The step with what its changed schema would break, and a name that is not taken under which it would break nothing. */
async function withBreaks(
  step: Step,
  taken: ReadonlySet<string>,
  port: Pick<ActionsPort, "check">,
): Promise<Step> {
  const change = step.changes.find(({ member }) => member === "schemata");
  if (step.operation !== "change" || change === undefined) return step;
  // A mode that is sent with the schema already holds for it.
  const mode = step.body["compatibility"] as CompatibilityMode | undefined;
  const candidate = { schemata: change.to as Schemata, ...(mode === undefined ? {} : { mode }) };
  const { breaks } = (await port.check(step.name, candidate)).data;
  if (breaks.length === 0) return step;
  let suggestion = nextVersionName(step.name);
  while (taken.has(suggestion)) suggestion = nextVersionName(suggestion);
  return { ...step, breaks, suggestion };
}
