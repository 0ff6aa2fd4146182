import type { CompatibilityMode, NewAction, Schemata, SchemaWarning } from "../../domain/action.ts";
import { asEvregError, type EvregError } from "../../domain/error.ts";
import { nextVersionName } from "../../domain/names.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { ActionsPort, Evreg } from "../../evreg.ts";
import type { Output } from "../io/output.ts";
import { type Plan, type Registry, stateSteps, type Step } from "./plan.ts";

export interface ApplyOptions {
  readonly dryRun: boolean;
  /** Whether differences have their own exit code, with `dryRun`. */
  readonly exitCode: boolean;
  readonly prune: boolean;
  /** Deletes without asking. */
  readonly yes: boolean;
  /** Applies schemas that break someone as well; else their steps are not tried. */
  readonly force: boolean;
  readonly keepGoing: boolean;
  /** Where secrets of created subscriptions go; `-` is stdout. */
  readonly secretsFile: string | undefined;
  readonly output: Output;
}

interface Done {
  /** The rowid of the record created or changed. */
  readonly rowid: number;
  /** What has no effect in its schema. */
  readonly warnings: readonly SchemaWarning[];
}

/** The result of a step. `not_tried`: one before it failed, or the command was interrupted. */
export type Outcome =
  | (Done & { readonly result: "done" })
  | { readonly result: "failed"; readonly error: EvregError }
  | { readonly result: "not_tried" };

export interface ExecuteOptions extends Pick<ApplyOptions, "force" | "keepGoing"> {
  readonly signal: AbortSignal;
  /** Called as soon as a subscription is created: its secret is in no other answer. */
  readonly created: (subscription: SubscriptionWithSecret) => Promise<void>;
}

/** After one of these every further call would fail too. */
const FATAL_CODES = new Set(["unreachable", "unauthorized", "unavailable"]);

/**
 * Executes the plan: each record all or nothing, actions before subscriptions, and deletions last, if all else is done.
 * The state of actions is sent when all of them exist. However it ends, a new plan leads to the same result.
 */
export async function executePlan(
  evreg: Evreg,
  { steps }: Plan,
  options: ExecuteOptions,
): Promise<ReadonlyMap<Step, Outcome>> {
  const { force, keepGoing, signal } = options;
  const outcomes = new Map<Step, Outcome>(steps.map((step) => [step, { result: "not_tried" }]));
  /** Steps that are done only when their state is sent too. */
  const stateless = new Map<Step, Done>();
  let isStopped = false;
  const trying = async (step: Step, act: () => Promise<void>): Promise<void> => {
    try {
      await act();
    } catch (thrown) {
      const error = asEvregError(thrown);
      outcomes.set(step, { result: "failed", error });
      if (!keepGoing || FATAL_CODES.has(error.code)) isStopped = true;
    }
  };
  const runAll = async (some: readonly Step[]): Promise<void> => {
    for (const step of some) {
      if (isStopped || signal.aborted) return;
      await trying(step, async () => {
        const done = await executeStep(evreg, step, options);
        if (Object.keys(step.state).length > 0) stateless.set(step, done);
        else outcomes.set(step, { result: "done", ...done });
      });
    }
  };
  const possible = force ? steps : steps.filter(({ breaks }) => breaks.length === 0);
  const actions = possible.filter(({ noun }) => noun === "action");
  await runAll(actions.filter(hasBody));
  for (const step of stateSteps(actions)) {
    if (isStopped || signal.aborted) break;
    const partlyDone = stateless.get(step);
    if (outcomes.get(step)?.result === "failed" || (hasBody(step) && partlyDone === undefined)) continue;
    await trying(step, async () => {
      const { data } = await evreg.actions.update(step.name, step.state);
      outcomes.set(step, { result: "done", rowid: data.rowid, warnings: partlyDone?.warnings ?? [] });
    });
  }
  await runAll(possible.filter(({ noun, operation }) => noun === "subscription" && operation !== "delete"));
  // What is deleted may be what something that failed was to replace.
  const deletions = steps.filter(({ operation }) => operation === "delete");
  const isRestDone = steps.every((step) => deletions.includes(step) || outcomes.get(step)?.result === "done");
  if (isRestDone) await runAll(deletions);
  return outcomes;
}

function hasBody({ body }: Step): boolean {
  return Object.keys(body).length > 0;
}

async function executeStep(
  { actions, subscriptions }: Evreg,
  step: Step,
  { force, created }: ExecuteOptions,
): Promise<Done> {
  const { noun, operation, body, bearerToken } = step;
  if (noun === "action") {
    const options = force && step.breaks.length > 0 ? ({ compatibility: "none" } as const) : {};
    const answer =
      operation === "create"
        ? await actions.create(body as unknown as NewAction)
        : await actions.update(step.name, body, options);
    return { rowid: answer.data.rowid, warnings: answer.meta?.warnings ?? [] };
  }
  const members = bearerToken === undefined ? body : { ...body, bearer_token: bearerToken };
  if (operation === "create") {
    const { data } = await subscriptions.create(members as unknown as NewSubscription);
    await created(data);
    return { warnings: [], rowid: data.rowid };
  }
  const rowid = step.rowid!;
  if (operation === "change") await subscriptions.update(rowid, members);
  else await subscriptions.delete(rowid);
  return { rowid, warnings: [] };
}

/** The plan, with what each changed schema would break, and a free name under which it would break nothing. */
export async function withBreaks(
  plan: Plan,
  { actions }: Pick<Registry, "actions">,
  port: Pick<ActionsPort, "check">,
): Promise<Plan> {
  const created = plan.steps.filter(({ noun, operation }) => noun === "action" && operation === "create");
  const taken = new Set([...actions.map(({ action }) => action), ...created.map(({ name }) => name)]);
  const steps: Step[] = [];
  for (const step of plan.steps) steps.push(await stepWithBreaks(step, taken, port));
  return { ...plan, steps };
}

async function stepWithBreaks(
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
