import type { NewAction } from "../../domain/action.ts";
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

/** What came of a plan. */
export interface Run {
  /** The rowids of as many records as steps were done, with the secret of a subscription that was created. */
  readonly done: readonly { readonly rowid: number; readonly secret?: string }[];
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
  const done: Run["done"][number][] = [];
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
): Promise<Run["done"][number]> {
  if (noun === "action") {
    const options = force && breaks.length > 0 ? ({ compatibility: "none" } as const) : {};
    const { data } =
      operation === "create"
        ? await actions.create(body as NewAction)
        : await actions.update(name, body, options);
    return { rowid: data.rowid };
  }
  const members = bearerToken === undefined ? body : { ...body, bearer_token: bearerToken };
  if (operation === "create") {
    const { data } = await subscriptions.create(members as NewSubscription);
    await created(data);
    return { rowid: data.rowid, secret: data.secret };
  }
  if (operation === "change") await subscriptions.update(rowid!, members);
  else await subscriptions.delete(rowid!);
  return { rowid: rowid! };
}
