import { asEvregError, EvregError, EXIT_CODE, exitCodeFor, messageOf } from "../../domain/error.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { type Output, writeOut } from "../io/output.ts";
import { agreementTo } from "../io/prompts.ts";
import { RecordFile } from "../io/files.ts";
import { counted, escapeControl } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { type Declarations, nameOf, problemsError } from "./declarations.ts";
import { registryOf } from "./export.ts";
import { SUBSCRIPTION } from "./members.ts";
import { type ApplyOptions, type Plan, planFor, type Run, type Step } from "./plan.ts";
import { planText, printNotes, printResult } from "./report.ts";
import type { NewAction } from "../../domain/action.ts";

/** Plans, prints the plan, executes it, and prints what was done and what was not. Answers the exit code. */
export async function apply(evreg: Evreg, declared: Declarations, options: ApplyOptions): Promise<number> {
  const { dryRun, exitCode, force, yes, output } = options;
  const plan = await planFor(declared, await registryOf(evreg), evreg.actions, options);
  const { steps, problems } = plan;
  if (problems.length > 0) throw problemsError(problems);
  if (output.format === "table") {
    await writeOut(planText(plan, options));
    printNotes(plan, options);
  }
  const isRefused = !force && steps.some(({ breaks }) => breaks.length > 0);
  if (dryRun || isRefused || steps.length === 0) {
    await printResult(plan, undefined, options);
    if (isRefused) return EXIT_CODE.conflict;
    return exitCode && steps.length > 0 ? EXIT.someFailed : EXIT.done;
  }
  const refusal = yes ? undefined : await refusalToDelete(plan);
  if (refusal !== undefined) return refusal;
  const run = await runOf(evreg, plan, options);
  await printResult(plan, run, options);
  return exitCodeOf(plan, run);
}

/** The exit code where a person does not agree to what the plan deletes. */
async function refusalToDelete({ steps }: Plan): Promise<number | undefined> {
  const count = steps.filter(({ operation }) => operation === "delete").length;
  if (count === 0) return undefined;
  const what = counted(count, "subscription");
  const question = `Delete ${what}, with the deliveries not finished yet?`;
  return agreementTo(`This deletes ${what}`, question, "Nothing was changed.");
}

/** 7 where some was done and a step failed, and its own code where nothing was. */
function exitCodeOf({ steps }: Plan, { done, failure }: Run): number {
  if (failure === undefined) return done.length === steps.length ? EXIT.done : EXIT.interrupted;
  const code = exitCodeFor(failure);
  return done.length === 0 || code === EXIT_CODE.unreachable ? code : EXIT.someFailed;
}

async function runOf(evreg: Evreg, { steps }: Plan, options: ApplyOptions): Promise<Run> {
  const { secretsFile, output, force } = options;
  const creates = steps.some(({ operation, noun }) => operation === "create" && noun === "subscription");
  // A pipe mostly ends in a log, where secrets must not be by accident.
  if (creates && secretsFile === undefined && !process.stdout.isTTY) {
    throw usageError(
      "This creates subscriptions, whose secrets are told only once. Say where to with --secrets-file FILE (mode 0600), or --secrets-file - for the output. Nothing was changed.",
    );
  }
  const path = creates && secretsFile !== "-" ? secretsFile : undefined;
  const file = path === undefined ? undefined : new RecordFile("--secrets-file", path, "a");
  try {
    const created = (subscription: SubscriptionWithSecret) => keepSecret(subscription, file, output);
    return await executeSteps(evreg, steps, { force, signal: interruption(), created });
  } finally {
    file?.close();
  }
}

/**
 * No other answer holds a secret, so each is on the disk at once: a kill or a power cut loses at most the one under way.
 * @param file absent where they go to stdout, whose JSON document has them
 * @throws `unavailable` when it cannot be written, as then no further one could be
 */
async function keepSecret(
  created: SubscriptionWithSecret,
  file: RecordFile | undefined,
  output: Output,
): Promise<void> {
  const { rowid, application, subscription, action, secret } = created;
  try {
    if (file !== undefined) {
      file.add({ rowid, application, subscription, action, secret });
      file.sync();
    } else if (output.format === "table") {
      const name = nameOf(SUBSCRIPTION, { application, subscription, action });
      await writeOut(`secret of ${escapeControl(name)}: ${secret}\n`);
    }
  } catch (error) {
    const next = nextCommand(`subscriptions rotate-secret ${rowid}`);
    const message = `It was created, but its secret could not be written: ${messageOf(error)} Make another: ${next}`;
    throw new EvregError("unavailable", message, {}, { cause: error });
  }
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
