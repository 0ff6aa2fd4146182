import { styleText } from "node:util";
import { note } from "../io/output.ts";
import { escapeControl, firstOf } from "../io/text.ts";
import { breakDetails } from "../report-error.ts";
import type { ApplyOptions, Change, Plan, Run, Step } from "./plan.ts";

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
export function printNotes({ steps, undeclared }: Plan, { prune }: ApplyOptions): void {
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
export async function printResult(plan: Plan, run: Run | undefined, options: ApplyOptions): Promise<void> {
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
