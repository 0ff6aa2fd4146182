import type { NewAction, SchemaWarning } from "../../domain/action.ts";
import { asEvregError, type EvregError } from "../../domain/error.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import type { Output } from "../io/output.ts";
import type { Step } from "./plan.ts";

export interface ApplyOptions {
  readonly dryRun: boolean;
  /** Whether differences have their own exit code, with `dryRun`. */
  readonly exitCode: boolean;
  readonly prune: boolean;
  /** Deletes without asking. */
  readonly yes: boolean;
  /** Applies schemas that break someone as well; else a plan with one is not executed. */
  readonly force: boolean;
  /** Where secrets of created subscriptions go; `-` is stdout. */
  readonly secretsFile: string | undefined;
  readonly output: Output;
}

/** A step that was done. */
interface Done {
  /** The rowid of the record created or changed. */
  readonly rowid: number;
  /** What has no effect in its schema. */
  readonly warnings: readonly SchemaWarning[];
  /** The secret of a subscription that was created. */
  readonly secret?: string;
}

/** What came of a plan. */
export interface Run {
  /** As many of the plan's first steps as were done. */
  readonly done: readonly Done[];
  /** Why the step behind them failed; those behind that were not tried. */
  readonly failure?: EvregError;
}

interface ExecuteOptions extends Pick<ApplyOptions, "force"> {
  readonly signal: AbortSignal;
  /** Called as soon as a subscription is created: its secret is in no other answer. */
  readonly created: (subscription: SubscriptionWithSecret) => Promise<void>;
}

/**
 * Executes the steps one after the other, each record all or nothing, up to the first that fails. However it ends, a new
 * plan leads to the same result.
 */
export async function executeSteps(
  evreg: Evreg,
  steps: readonly Step[],
  options: ExecuteOptions,
): Promise<Run> {
  const done: Done[] = [];
  for (const step of steps) {
    if (options.signal.aborted) break;
    try {
      done.push(await executeStep(evreg, step, options));
    } catch (error) {
      return { done, failure: asEvregError(error) };
    }
  }
  return { done };
}

async function executeStep(
  { actions, subscriptions }: Evreg,
  { noun, operation, name, rowid, body, bearerToken, breaks }: Step,
  { force, created }: ExecuteOptions,
): Promise<Done> {
  if (noun === "action") {
    const options = force && breaks.length > 0 ? ({ compatibility: "none" } as const) : {};
    const { data, meta } =
      operation === "create"
        ? await actions.create(body as unknown as NewAction)
        : await actions.update(name, body, options);
    return { rowid: data.rowid, warnings: meta?.warnings ?? [] };
  }
  const members = bearerToken === undefined ? body : { ...body, bearer_token: bearerToken };
  if (operation === "create") {
    const { data } = await subscriptions.create(members as unknown as NewSubscription);
    await created(data);
    return { rowid: data.rowid, warnings: [], secret: data.secret };
  }
  if (operation === "change") await subscriptions.update(rowid!, members);
  else await subscriptions.delete(rowid!);
  return { rowid: rowid!, warnings: [] };
}
