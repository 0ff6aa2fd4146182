import { EXIT_CODE } from "../../domain/error.ts";
import { EXIT } from "../exit-code.ts";
import { note } from "../output.ts";
import { printableLine } from "../printable.ts";
import type { Outcome } from "./carry-out.ts";
import type { ApplyOptions } from "./options.ts";
import type { Plan, Step } from "./plan.ts";
import { stepTitle } from "./plan-text.ts";

/** What carrying a plan out has come to. */
export interface Run {
  readonly outcomes: ReadonlyMap<Step, Outcome>;
  /** Secrets that the document is to hold, by rowid. */
  readonly secrets: ReadonlyMap<number, string>;
  readonly interrupted: boolean;
}

/** Lines of one sort before the rest is only counted. */
const MOST_LINES = 20;

/** 5 for what breaks, 7 where some was done and some failed, and each failure's own where nothing was. */
export function exitCodeOf(plan: Plan, run: Run | undefined, options: ApplyOptions): number {
  const blocked = !options.force && plan.steps.some(({ breaks }) => breaks.length > 0);
  if (run === undefined) {
    if (blocked) return EXIT_CODE.conflict;
    return options.dryRun && options.exitCode && plan.steps.length > 0 ? EXIT.someFailed : EXIT.done;
  }
  const outcomes = [...run.outcomes.values()];
  const failures = outcomes.filter((outcome) => outcome.result === "failed");
  const unreachable = failures.some(({ error }) => error.code === "unreachable");
  if (unreachable) return EXIT_CODE.unreachable;
  if (run.interrupted && outcomes.some(({ result }) => result === "not_tried")) return EXIT.interrupted;
  const [first] = failures;
  if (first === undefined) return blocked ? EXIT_CODE.conflict : EXIT.done;
  return outcomes.some(({ result }) => result === "done") ? EXIT.someFailed : EXIT_CODE[first.error.code];
}

/** What there is beside the declarations, on stderr. */
export function tellUndeclared({ undeclared }: Plan, { prune }: ApplyOptions): void {
  const { actions, subscriptions } = undeclared;
  if (actions.length > 0) tellMany("Not declared, and left alone as actions always are:", actions);
  if (subscriptions.length > 0 && !prune) {
    tellMany("Not declared, and left alone without --prune:", subscriptions);
  }
}

/** For a person what was done and what was not, on stderr; for a program the whole plan with its results, on stdout. */
export async function tellResult(plan: Plan, run: Run | undefined, options: ApplyOptions): Promise<void> {
  const { output } = options;
  if (output.format === "jsonl") return output.lines(plan.steps.map((step) => record(step, run)));
  if (output.format === "json") {
    const { unchanged, undeclared } = plan;
    const data = plan.steps.map((step) => record(step, run));
    return output.document({ data, meta: { dry_run: options.dryRun, unchanged, undeclared } });
  }
  if (run !== undefined) return tellRun(run, options);
  if (options.dryRun) for (const step of plan.steps) tellWarnings(step);
  if (options.dryRun || plan.steps.length === 0) return;
  note("Nothing was changed, as the plan holds a change that breaks someone. --keep-going does the rest.");
}

function record(step: Step, run: Run | undefined): object {
  const { operation, noun, identity, rowid, changes, breaks, suggestion } = step;
  const outcome = run?.outcomes.get(step);
  const done = outcome?.result === "done" ? outcome : undefined;
  return {
    operation,
    noun,
    ...identity,
    rowid: done?.rowid ?? rowid,
    changes,
    breaks,
    suggestion,
    result: outcome?.result ?? "planned",
    // Of what is done the service's own; they have no place in the files.
    warnings: done?.warnings ?? step.warnings,
    error: outcome?.result === "failed" ? outcome.error.body() : undefined,
    secret: done === undefined || noun !== "subscription" ? undefined : run?.secrets.get(done.rowid),
  };
}

function tellWarnings({ name, warnings }: Step): void {
  for (const { place, pointer, message } of warnings) {
    note(`Warning: ${printableLine(`${place}: ${`${name} ${pointer}`.trim()}: ${message}`)}`);
  }
}

function tellRun({ outcomes, interrupted }: Run, { force }: ApplyOptions): void {
  const done = { create: 0, change: 0, delete: 0 };
  const failed: string[] = [];
  const notTried: string[] = [];
  for (const [step, outcome] of outcomes) {
    if (outcome.result === "not_tried") notTried.push(stepTitle(step));
    else if (outcome.result === "failed") {
      failed.push(`${stepTitle(step)}: ${printableLine(outcome.error.message)}`);
    } else {
      done[step.operation] += 1;
      for (const { pointer, message } of outcome.warnings) {
        note(`Warning: ${printableLine(`${step.name} ${pointer}`.trim())}: ${printableLine(message)}`);
      }
    }
  }
  if (failed.length > 0) tellMany("Failed:", failed);
  if (notTried.length > 0) tellMany(interrupted ? "Interrupted. Not tried:" : "Not tried:", notTried);
  const counts = `${done.create} created, ${done.change} changed, ${done.delete} deleted`;
  const rest = failed.length + notTried.length;
  if (rest === 0) return note(`Done: ${counts}.`);
  const breaking = force ? 0 : [...outcomes.keys()].filter(({ breaks }) => breaks.length > 0).length;
  const next = breaking < rest ? " the same command goes on with the rest." : "";
  const left =
    breaking === 0
      ? ""
      : ` What breaks someone is left undone until it is declared otherwise, or --compatibility none says to do it.`;
  note(`${counts}. That stays${next === "" ? "." : `;${next}`}${left}`);
}

function tellMany(title: string, lines: readonly string[]): void {
  note(title);
  for (const line of lines.slice(0, MOST_LINES)) note(`  ${printableLine(line)}`);
  const more = lines.length - MOST_LINES;
  if (more > 0) note(`  and ${more.toLocaleString("en")} more`);
}
