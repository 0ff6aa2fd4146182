import type { SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { writeOut } from "../io/output.ts";
import { agreementTo } from "../io/prompts.ts";
import { counted } from "../io/text.ts";
import { usageError } from "../usage-errors.ts";
import { type Declarations, problemsError } from "./declarations.ts";
import { type ApplyOptions, executePlan, withBreaks } from "./execute.ts";
import { registryOf } from "./export.ts";
import { type Plan, planFor } from "./plan.ts";
import { exitCodeOf, planText, type Run, SecretSink, printResult, printUndeclared } from "./report.ts";

/** Plans, prints the plan, executes it, and prints what was done and what was not. Answers the exit code. */
export async function apply(evreg: Evreg, declared: Declarations, options: ApplyOptions): Promise<number> {
  const registry = await registryOf(evreg);
  const planned = planFor(declared, registry, options);
  if (planned.problems.length > 0) throw problemsError(planned.problems);
  const plan = await withBreaks(planned, registry, evreg.actions);
  if (options.output.format === "table") {
    await writeOut(planText(plan, options));
    printUndeclared(plan, options);
  }
  const { steps } = plan;
  const { dryRun, force, keepGoing, yes } = options;
  // A plan with breaks is not executed, unless `--keep-going` asks for the rest.
  const isAllowed = force || keepGoing || steps.every(({ breaks }) => breaks.length === 0);
  const isToRun = !dryRun && steps.length > 0 && isAllowed;
  if (isToRun && !yes) {
    const refusal = await refusalToDelete(plan);
    if (refusal !== undefined) return refusal;
  }
  const run = isToRun ? await runOf(evreg, plan, options) : undefined;
  await printResult(plan, run, options);
  return exitCodeOf(plan, run, options);
}

/** The exit code where a person does not agree to what the plan deletes. */
async function refusalToDelete({ steps }: Plan): Promise<number | undefined> {
  const count = steps.filter(({ operation }) => operation === "delete").length;
  if (count === 0) return undefined;
  const what = counted(count, "subscription");
  const question = `Delete ${what}, with the deliveries not finished yet?`;
  return agreementTo(`This deletes ${what}`, question, "Nothing was changed.");
}

async function runOf(evreg: Evreg, plan: Plan, options: ApplyOptions): Promise<Run> {
  const { force, keepGoing } = options;
  const creates = plan.steps.some(({ operation, noun }) => operation === "create" && noun === "subscription");
  const secrets = creates ? openSecretSink(options) : undefined;
  const signal = interruption();
  try {
    const created = async (subscription: SubscriptionWithSecret) => secrets?.add(subscription);
    const outcomes = await executePlan(evreg, plan, { force, keepGoing, signal, created });
    return { outcomes, secrets: secrets?.shown ?? new Map(), interrupted: signal.aborted };
  } finally {
    secrets?.close();
  }
}

/** A pipe mostly ends in a log, where secrets must not be by accident. */
function openSecretSink({ secretsFile, output }: ApplyOptions): SecretSink {
  if (secretsFile === undefined && !process.stdout.isTTY) {
    throw usageError(
      "This creates subscriptions, whose secrets are told only once. Say where to with --secrets-file FILE (mode 0600), or --secrets-file - for the output. Nothing was changed.",
    );
  }
  return new SecretSink(secretsFile ?? "-", output);
}
