import { styleText } from "node:util";
import { breakLines } from "../break-lines.ts";
import { printableLine } from "../printable.ts";
import type { Change, Plan, Step } from "./plan.ts";

/** Longest value shown on a line; of a longer one only that it changes. */
const LONGEST_VALUE = 60;

const TONES = { "+": "green", "~": "yellow", "-": "red", "!": "red" } as const;

/** One step a line, with what changes; a breaking one with each break and the way out. */
export function planText({ steps, unchanged }: Plan, { force }: { readonly force: boolean }): string {
  const lines = steps.flatMap((step) => stepLines(step, force));
  return [...lines, summary(steps, unchanged)].map((line) => `${line}\n`).join("");
}

/** What a step is in one character: `+ ~ -`, and `!` for one that breaks someone. */
function signOf({ operation, breaks }: Step): keyof typeof TONES {
  if (breaks.length > 0) return "!";
  return ({ create: "+", change: "~", delete: "-" } as const)[operation];
}

/** A step without what it changes: `~ action order.created`. */
export function stepTitle(step: Step): string {
  return `${signOf(step)} ${step.noun} ${printableLine(step.name)}`;
}

function stepLines(step: Step, force: boolean): string[] {
  const tone = TONES[signOf(step)];
  const what = step.operation === "change" ? `: ${step.changes.map(shown).join(", ")}` : "";
  const title = styleText(tone, stepTitle(step), { stream: process.stdout }) + what;
  const breaks = step.breaks.flatMap((broken) => [
    `    ${printableLine(broken.pointer || "(root)")}: ${printableLine(broken.message)}`,
    ...breakLines(broken).map((line) => `      ${line}`),
  ]);
  return breaks.length === 0 ? [title] : [title, ...breaks, `    ${wayOut(step, force)}`];
}

function wayOut({ name, suggestion = name }: Step, force: boolean): string {
  if (force) return "Applied all the same, as --compatibility none says.";
  return `This would break someone. Declare it as ${suggestion} beside ${name}, and publish to both for a while; or apply it all the same with --compatibility none (scope admin).`;
}

function shown({ member, from, to }: Change): string {
  const texts = [from, to].map((value) => JSON.stringify(value) ?? "");
  if (texts.some((text) => text.length > LONGEST_VALUE || /^[{[]/.test(text))) return member;
  return `${member} ${texts.map(printableLine).join(" → ")}`;
}

function summary(steps: readonly Step[], unchanged: number): string {
  const count = (operation: Step["operation"]) =>
    steps.filter((step) => step.operation === operation && step.breaks.length === 0).length;
  const breaking = steps.filter(({ breaks }) => breaks.length > 0).length;
  const counts: readonly (readonly [number, string])[] = [
    [count("create"), "to create"],
    [count("change"), "to change"],
    [count("delete"), "to delete"],
    [breaking, breaking === 1 ? "that breaks someone" : "that break someone"],
  ];
  const parts = counts.filter(([number]) => number > 0).map(([number, what]) => `${many(number)} ${what}`);
  const rest = `${many(unchanged)} as declared`;
  return parts.length === 0 ? `Nothing to do; ${rest}.` : `Plan: ${parts.join(", ")}; ${rest}.`;
}

function many(number: number): string {
  return number.toLocaleString("en");
}
