import { styleText } from "node:util";
import { asEvregError, type EvregError, EXIT_CODE, exitCodeFor } from "../../domain/error.ts";
import type { NewSubscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output, writeOut } from "../io/output.ts";
import { agreementTo } from "../io/prompts.ts";
import { counted, escapeControl, firstOf } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { EXIT } from "../usage-errors.ts";
import { type Declarations, problemsError } from "./declarations.ts";
import { registryOf } from "./export.ts";
import { type Change, type Plan, planFor, type Step } from "./plan.ts";
import type { NewAction } from "../../domain/action.ts";
import { breakDetails } from "../report-error.ts";

export interface ApplyOptions {
  readonly dryRun: boolean;
  readonly prune: boolean;
  /** Deletes without asking. */
  readonly yes: boolean;
  /** Applies schemas that break someone as well; else a plan with one is not executed. */
  readonly force: boolean;
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
  const { dryRun, force, yes, output } = options;
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
    return isRefused ? EXIT_CODE.conflict : EXIT.done;
  }
  const refusal = yes ? undefined : await refusalToDelete(plan);
  if (refusal !== undefined) return refusal;
  const run = await executeSteps(evreg, steps, { force, signal: interruption() });
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

interface ExecuteOptions extends Pick<ApplyOptions, "force"> {
  readonly signal: AbortSignal;
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
  { force }: ExecuteOptions,
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
  const { dryRun, output } = options;
  const { steps, unchanged, undeclared } = plan;
  if (output.format !== "table") {
    const data = steps.map((step, index) => record(step, index, run));
    if (output.format === "jsonl") return output.lines(data);
    return output.document({ data, meta: { dry_run: dryRun, unchanged, undeclared } });
  }
  if (run !== undefined) await printRun(steps, run);
  else if (!dryRun && steps.length > 0)
    note("Nothing was changed, as the plan holds a change that breaks someone.");
}

function record(step: Step, index: number, run: Run | undefined): object {
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
    secret: done?.secret,
  };
}

async function printRun(steps: readonly Step[], { done, failure }: Run): Promise<void> {
  const count = (operation: Step["operation"]): number =>
    steps.slice(0, done.length).filter((step) => step.operation === operation).length;
  await printSecrets(steps, done);
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

/** A pipe mostly ends in a log, where secrets must not be by accident. */
async function printSecrets(steps: readonly Step[], done: Run["done"]): Promise<void> {
  for (const [index, { rowid, secret }] of done.entries()) {
    const name = escapeControl(steps[index]!.name);
    if (secret === undefined) continue;
    if (process.stdout.isTTY) await writeOut(`secret of ${name}: ${secret}\n`);
    else note(`For a secret of ${name}: ${nextCommand(`subscriptions rotate-secret ${rowid}`)}`);
  }
}

function printList(title: string, lines: readonly string[]): void {
  note(title);
  for (const line of firstOf(lines, MAX_LINES)) note(`  ${escapeControl(line)}`);
}
