import { appendFileSync, closeSync, fchmodSync, fstatSync, openSync } from "node:fs";
import { styleText } from "node:util";
import { EvregError, EXIT_CODE, exitCodeFor } from "../../domain/error.ts";
import type { SubscriptionWithSecret } from "../../domain/subscription.ts";
import { systemReason } from "../io/files.ts";
import { note, type Output, writeOut } from "../io/output.ts";
import { escapeControl } from "../io/text.ts";
import { breakDetails } from "../report-error.ts";
import { mustNotBeDataFile } from "../../runtime/data-files.ts";
import { syncFile } from "../../runtime/files.ts";
import { nextCommand } from "../target/next-command.ts";
import { EXIT, usageError } from "../usage-errors.ts";
import { nameOf } from "./declarations.ts";
import type { ApplyOptions, Outcome } from "./execute.ts";
import { SUBSCRIPTION, type Values } from "./members.ts";
import type { Change, Plan, Step } from "./plan.ts";

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

/** The result of executing a plan. */
export interface Run {
  readonly outcomes: ReadonlyMap<Step, Outcome>;
  /** Secrets that the document is to hold, by rowid. */
  readonly secrets: ReadonlyMap<number, string>;
  readonly interrupted: boolean;
}

/** Lines of one sort before the rest is only counted. */
const MAX_LINES = 20;

/** 5 for what breaks, 7 where some was done and some failed, and each failure's own where nothing was. */
export function exitCodeOf(plan: Plan, run: Run | undefined, options: ApplyOptions): number {
  const blocked = !options.force && plan.steps.some(({ breaks }) => breaks.length > 0);
  if (run === undefined) {
    if (blocked) return EXIT_CODE.conflict;
    return options.dryRun && options.exitCode && plan.steps.length > 0 ? EXIT.someFailed : EXIT.done;
  }
  const outcomes = [...run.outcomes.values()];
  const failures = outcomes.filter((outcome) => outcome.result === "failed");
  if (failures.some(({ error }) => exitCodeFor(error) === EXIT_CODE.unreachable))
    return EXIT_CODE.unreachable;
  if (run.interrupted && outcomes.some(({ result }) => result === "not_tried")) return EXIT.interrupted;
  const [first] = failures;
  if (first === undefined) return blocked ? EXIT_CODE.conflict : EXIT.done;
  return outcomes.some(({ result }) => result === "done") ? EXIT.someFailed : exitCodeFor(first.error);
}

/** What exists and is not declared, on stderr. */
export function printUndeclared({ undeclared }: Plan, { prune }: ApplyOptions): void {
  const { actions, subscriptions } = undeclared;
  if (actions.length > 0) printList("Not declared, and left alone as actions always are:", actions);
  if (subscriptions.length > 0 && !prune) {
    printList("Not declared, and left alone without --prune:", subscriptions);
  }
}

/** Prints for a person what was done and what not, on stderr; for a program the whole plan with its results, on stdout. */
export async function printResult(plan: Plan, run: Run | undefined, options: ApplyOptions): Promise<void> {
  const { output } = options;
  const { unchanged, undeclared } = plan;
  const data = plan.steps.map((step) => record(step, run));
  if (output.format === "jsonl") return output.lines(data);
  if (output.format === "json")
    return output.document({ data, meta: { dry_run: options.dryRun, unchanged, undeclared } });
  if (run !== undefined) return printRun(run, options);
  if (!options.dryRun) {
    if (plan.steps.length > 0)
      note(
        "Nothing was changed, as the plan holds a change that breaks someone. --keep-going does the rest.",
      );
    return;
  }
  for (const { name, warnings } of plan.steps) {
    for (const { place, pointer, message } of warnings) {
      note(`Warning: ${escapeControl(`${place}: ${`${name} ${pointer}`.trim()}: ${message}`)}`);
    }
  }
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
    // Once done, those of the service; they have no place in the files.
    warnings: done?.warnings ?? step.warnings,
    error: outcome?.result === "failed" ? outcome.error.body() : undefined,
    secret: done === undefined || noun !== "subscription" ? undefined : run?.secrets.get(done.rowid),
  };
}

function printRun({ outcomes, interrupted }: Run, { force }: ApplyOptions): void {
  const done = { create: 0, change: 0, delete: 0 };
  const failed: string[] = [];
  const notTried: string[] = [];
  for (const [step, outcome] of outcomes) {
    if (outcome.result === "not_tried") notTried.push(stepTitle(step));
    else if (outcome.result === "failed") {
      failed.push(`${stepTitle(step)}: ${escapeControl(outcome.error.message)}`);
    } else {
      done[step.operation] += 1;
      for (const { pointer, message } of outcome.warnings) {
        note(`Warning: ${escapeControl(`${step.name} ${pointer}`.trim())}: ${escapeControl(message)}`);
      }
    }
  }
  if (failed.length > 0) printList("Failed:", failed);
  if (notTried.length > 0) printList(interrupted ? "Interrupted. Not tried:" : "Not tried:", notTried);
  const counts = `${done.create} created, ${done.change} changed, ${done.delete} deleted`;
  const rest = failed.length + notTried.length;
  if (rest === 0) return note(`Done: ${counts}.`);
  const breaking = force ? 0 : [...outcomes.keys()].filter(({ breaks }) => breaks.length > 0).length;
  const next = breaking < rest ? " the same command goes on with the rest." : "";
  const undone =
    breaking === 0
      ? ""
      : ` What breaks someone is left undone until it is declared otherwise, or --compatibility none says to do it.`;
  note(`${counts}. That stays${next === "" ? "." : `;${next}`}${undone}`);
}

function printList(title: string, lines: readonly string[]): void {
  note(title);
  for (const line of lines.slice(0, MAX_LINES)) note(`  ${escapeControl(line)}`);
  const more = lines.length - MAX_LINES;
  if (more > 0) note(`  and ${more.toLocaleString("en")} more`);
}

/**
 * Where the secrets of created subscriptions go. No other answer holds one, so each is written to the disk at once: a kill
 * or a power cut loses at most the few under way.
 */
export class SecretSink {
  /** The secrets for the document of `--json`, by rowid. */
  readonly shown = new Map<number, string>();
  readonly #output: Output;
  readonly #path: string;
  readonly #file: number | undefined;

  /**
   * @param path of a file that gets one a line, readable by its owner only; `-` is stdout
   * @throws `usage` when it cannot be opened
   */
  constructor(path: string, output: Output) {
    this.#output = output;
    this.#path = path;
    if (path === "-") return;
    mustNotBeDataFile(path);
    try {
      this.#file = openSync(path, "a", 0o600);
      // A device such as /dev/null has no mode to set.
      if (fstatSync(this.#file).isFile()) fchmodSync(this.#file, 0o600);
    } catch (error) {
      throw usageError(
        `--secrets-file: ${path} cannot be written (${systemReason(error)}). Nothing was changed.`,
      );
    }
  }

  /** @throws `unavailable` when it cannot be written, as then no further one could be */
  async add(created: SubscriptionWithSecret): Promise<void> {
    const { rowid, application, subscription, action, secret } = created;
    try {
      if (this.#file !== undefined) {
        const line = JSON.stringify({ rowid, application, subscription, action, secret });
        appendFileSync(this.#file, `${line}\n`);
        syncFile(this.#file, this.#path);
      } else if (this.#output.format === "table") {
        const name = nameOf(SUBSCRIPTION, created as unknown as Values);
        await writeOut(`secret of ${escapeControl(name)}: ${secret}\n`);
      } else this.shown.set(rowid, secret);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      throw new EvregError(
        "unavailable",
        `It was created, but its secret could not be written (${code ?? message}). Make another: ${nextCommand(`subscriptions rotate-secret ${rowid}`)}`,
        {},
        { cause: error },
      );
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }
}
