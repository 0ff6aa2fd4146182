import { styleText } from "node:util";
import { asEvregError, EvregError, EXIT_CODE, exitCodeFor, messageOf } from "../../domain/error.ts";
import type { NewSubscription, SubscriptionWithSecret } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output, writeOut } from "../io/output.ts";
import { agreementTo } from "../io/prompts.ts";
import { RecordFile } from "../io/files.ts";
import { counted, escapeControl, firstOf } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { type Declarations, nameOf, problemsError } from "./declarations.ts";
import { registryOf } from "./export.ts";
import { SUBSCRIPTION } from "./members.ts";
import { type Change, type Plan, planFor, type Step } from "./plan.ts";
import type { NewAction } from "../../domain/action.ts";
import { breakDetails } from "../report-error.ts";

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
  const file = path === undefined ? undefined : new RecordFile("--secrets-file", path);
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

/** Longest value shown on a line; of a longer one only that it changes. */
const LONGEST_VALUE = 60;

const SIGNS = { create: "+", change: "~", delete: "-" } as const;
const COLORS = { "+": "green", "~": "yellow", "-": "red", "!": "red" } as const;

/** One step a line, with what changes; a breaking one with each break and the way out. */
export function planText({ steps, unchanged }: Plan, { force }: { readonly force: boolean }): string {
  const lines = steps.flatMap((step) => stepLines(step, force));
  return [...lines, summary(steps, unchanged)].map((line) => `${line}\n`).join("");
}

/** `+ ~ -`, and `!` for a step that breaks someone. */
function signOf({ operation, breaks }: Step): keyof typeof COLORS {
  return breaks.length > 0 ? "!" : SIGNS[operation];
}

/** A step without what it changes: `~ action order.created`. */
function stepTitle(step: Step): string {
  return `${signOf(step)} ${step.noun} ${escapeControl(step.name)}`;
}

function stepLines(step: Step, force: boolean): string[] {
  const { operation, changes, name, suggestion = name } = step;
  const what = operation === "change" ? `: ${changes.map(shown).join(", ")}` : "";
  const title = styleText(COLORS[signOf(step)], stepTitle(step), { stream: process.stdout }) + what;
  if (step.breaks.length === 0) return [title];
  const breaks = step.breaks.flatMap((broken) => [
    `    ${escapeControl(broken.pointer || "(root)")}: ${escapeControl(broken.message)}`,
    ...breakDetails(broken).map((line) => `      ${line}`),
  ]);
  const advice = force
    ? "Applied all the same, as --compatibility none says."
    : `This would break someone. Declare it as ${suggestion} beside ${name}, and publish to both for a while; or apply it all the same with --compatibility none (scope admin).`;
  return [title, ...breaks, `    ${advice}`];
}

function shown({ member, from, to }: Change): string {
  const texts = [from, to].map((value) => JSON.stringify(value) ?? "");
  if (texts.some((text) => text.length > LONGEST_VALUE || /^[{[]/.test(text))) return member;
  return `${member} ${texts.map(escapeControl).join(" → ")}`;
}

function summary(steps: readonly Step[], unchanged: number): string {
  const count = (sign: string) => steps.filter((step) => signOf(step) === sign).length;
  const breaking = count("!");
  const counts: readonly (readonly [number, string])[] = [
    [count("+"), "to create"],
    [count("~"), "to change"],
    [count("-"), "to delete"],
    [breaking, breaking === 1 ? "that breaks someone" : "that break someone"],
  ];
  const plan = counts
    .filter(([number]) => number > 0)
    .map(([number, what]) => `${number.toLocaleString("en")} ${what}`);
  const rest = `${unchanged.toLocaleString("en")} unchanged`;
  return plan.length === 0 ? `Nothing to do; ${rest}.` : `Plan: ${plan.join(", ")}; ${rest}.`;
}

/** Lines of one sort before the rest is only counted. */
const MAX_LINES = 20;

/** What a person should know of a plan beside its steps, on stderr: what is not declared, and what has no effect. */
function printNotes({ steps, undeclared }: Plan, { prune }: ApplyOptions): void {
  const { actions, subscriptions } = undeclared;
  if (actions.length > 0) printList("Not declared, and left alone as actions always are:", actions);
  if (subscriptions.length > 0 && !prune) {
    printList("Not declared, and left alone without --prune:", subscriptions);
  }
  for (const { name, warnings } of steps) {
    for (const { place, pointer, message } of warnings) {
      note(`Warning: ${escapeControl(`${place}: ${`${name} ${pointer}`.trim()}: ${message}`)}`);
    }
  }
}

/**
 * Prints for a person what was done and what not, on stderr; for a program the whole plan with its results, on stdout.
 * @param run `undefined` for a plan that was not executed
 */
async function printResult(plan: Plan, run: Run | undefined, options: ApplyOptions): Promise<void> {
  const { dryRun, output, secretsFile = "-" } = options;
  const { steps, unchanged, undeclared } = plan;
  if (output.format !== "table") {
    const data = steps.map((step, index) => record(step, index, run, secretsFile === "-"));
    if (output.format === "jsonl") return output.lines(data);
    return output.document({ data, meta: { dry_run: dryRun, unchanged, undeclared } });
  }
  if (run !== undefined) printRun(steps, run);
  else if (!dryRun && steps.length > 0)
    note("Nothing was changed, as the plan holds a change that breaks someone.");
}

function record(step: Step, index: number, run: Run | undefined, showsSecrets: boolean): object {
  const { operation, noun, identity, changes, breaks, suggestion, warnings } = step;
  const done = run?.done[index];
  const error = index === run?.done.length ? run.failure : undefined;
  const notDone = run === undefined ? "planned" : error === undefined ? "not_tried" : "failed";
  return {
    operation,
    noun,
    ...identity,
    rowid: done?.rowid ?? step.rowid,
    changes,
    breaks,
    suggestion,
    result: done === undefined ? notDone : "done",
    warnings,
    error: error?.body(),
    secret: showsSecrets ? done?.secret : undefined,
  };
}

function printRun(steps: readonly Step[], { done, failure }: Run): void {
  const count = (operation: Step["operation"]): number =>
    steps.slice(0, done.length).filter((step) => step.operation === operation).length;
  const behind = steps.slice(done.length);
  if (failure !== undefined) {
    note(`Failed:\n  ${stepTitle(behind.shift()!)}: ${escapeControl(failure.message)}`);
  }
  const title = failure === undefined ? "Interrupted. Not tried:" : "Not tried:";
  if (behind.length > 0) printList(title, behind.map(stepTitle));
  const text = `${count("create")} created, ${count("change")} changed, ${count("delete")} deleted`;
  const isAll = done.length === steps.length;
  note(isAll ? `Done: ${text}.` : `${text}. That stays; the same command goes on with the rest.`);
}

function printList(title: string, lines: readonly string[]): void {
  note(title);
  for (const line of firstOf(lines, MAX_LINES)) note(`  ${escapeControl(line)}`);
}
