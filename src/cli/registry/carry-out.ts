import type { NewAction, SchemaWarning } from "../../domain/action.ts";
import { asEvregError, type EvregError } from "../../domain/error.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import type { Plan, Step } from "./plan.ts";
import { stateCalls } from "./states.ts";

interface Done {
  /** Of the record created or changed. */
  readonly rowid: number;
  /** What its schema says to no effect. */
  readonly warnings: readonly SchemaWarning[];
}

/** What became of a step. `not_tried`: one before it failed, or the command was interrupted. */
export type Outcome =
  | (Done & { readonly result: "done" })
  | { readonly result: "failed"; readonly error: EvregError }
  | { readonly result: "not_tried" };

export interface CarryOutOptions {
  /** Applies schemas that break someone as well; else their steps are not tried. */
  readonly force: boolean;
  readonly keepGoing: boolean;
  readonly signal: AbortSignal;
  /** Called as soon as a subscription is created: its secret is in no other answer. */
  readonly created: (subscription: SubscriptionWithSecret) => Promise<void>;
}

/** Calls under way at a time: enough to share commits, few enough to leave a server to others. */
const CONCURRENT_CALLS = 8;
/** After one of these every further call would fail alike. */
const HOPELESS = new Set(["unreachable", "unauthorized", "unavailable"]);

/**
 * Carries the plan out: each record all or nothing, actions before subscriptions, and deletions last, if all
 * else is done. Whether actions go on is told when all of them are there. Carried out again after whatever end, a new plan leads to the same.
 */
export async function carryOut(
  evreg: Evreg,
  { steps }: Plan,
  options: CarryOutOptions,
): Promise<ReadonlyMap<Step, Outcome>> {
  const outcomes = new Map<Step, Outcome>(steps.map((step) => [step, { result: "not_tried" }]));
  /** What is done but for the state, without which it is not. */
  const stateless = new Map<Step, Done>();
  let stopped = false;
  const fail = (step: Step, thrown: unknown): void => {
    const error = asEvregError(thrown);
    outcomes.set(step, { result: "failed", error });
    if (!options.keepGoing || HOPELESS.has(error.code)) stopped = true;
  };
  const inTurn = async (queue: Iterator<Step>): Promise<void> => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) {
      if (stopped || options.signal.aborted) return;
      const step = next.value;
      try {
        const done = await carryOutOne(evreg, step, options);
        if (Object.keys(step.state).length > 0) stateless.set(step, done);
        else outcomes.set(step, { result: "done", ...done });
      } catch (thrown) {
        fail(step, thrown);
      }
    }
  };
  const inStates = async (some: readonly Step[]): Promise<void> => {
    for (const { step, body, isLast } of stateCalls(some)) {
      if (stopped || options.signal.aborted) return;
      const begun = stateless.get(step);
      if (outcomes.get(step)?.result === "failed" || (hasBody(step) && begun === undefined)) continue;
      try {
        const { data } = await evreg.actions.update(step.name, body);
        if (isLast)
          outcomes.set(step, { result: "done", rowid: data.rowid, warnings: begun?.warnings ?? [] });
      } catch (thrown) {
        fail(step, thrown);
      }
    }
  };
  const possible = options.force ? steps : steps.filter(({ breaks }) => breaks.length === 0);
  const [deletions, others] = partition(possible, ({ operation }) => operation === "delete");
  const [actions, subscriptions] = partition(others, ({ noun }) => noun === "action");
  const all = async (some: readonly Step[]): Promise<void> => {
    const queue = some.values();
    await Promise.all(Array.from({ length: CONCURRENT_CALLS }, () => inTurn(queue)));
  };
  await all(actions.filter(hasBody));
  await inStates(actions);
  await all(subscriptions);
  // What is deleted may be what something that failed was to replace.
  const isRestDone = steps.every(
    (step) => step.operation === "delete" || outcomes.get(step)?.result === "done",
  );
  if (isRestDone) await all(deletions);
  return outcomes;
}

function hasBody({ body }: Step): boolean {
  return Object.keys(body).length > 0;
}

function partition(steps: readonly Step[], is: (step: Step) => boolean): [Step[], Step[]] {
  return [steps.filter(is), steps.filter((step) => !is(step))];
}

async function carryOutOne(
  { actions, subscriptions }: Evreg,
  step: Step,
  { force, created }: CarryOutOptions,
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
