import type { Action, CompatibilityMode, CompatibilityRule } from "../../../domain/action.ts";
import { may } from "../../api/identity.ts";

const STATES = {
  active: { word: "In force", tone: "active", means: "Events can be published." },
  deprecated: { word: "Deprecated", tone: "waiting", means: "Publishers are told to move on." },
  retired: { word: "Retired", tone: "failed", means: "Publishing is refused. Reading and deliveries go on." },
} as const;

type ActionState = Pick<
  Action,
  "deprecated" | "retired" | "successor" | "compatibility" | "compatibility_against"
>;

export const stateOf = ({
  deprecated,
  retired,
}: Pick<Action, "deprecated" | "retired">): keyof typeof STATES =>
  retired ? "retired" : deprecated ? "deprecated" : "active";

/** Whether publishing goes on, as a badge beside a title. */
export function ActionBadge({ action }: { readonly action: ActionState }) {
  const { word, tone, means } = STATES[stateOf(action)];
  return (
    <span class={`badge ${tone}`} title={means}>
      {word}
    </span>
  );
}

/** The same in a list, where only what is not in force says so. */
export function ActionWord({ action }: { readonly action: ActionState }) {
  const state = stateOf(action);
  if (state === "active") return <span class="muted">In force</span>;
  return <span class={state === "retired" ? "danger-text" : "warn-text"}>{STATES[state].word}</span>;
}

export const PROTECTED: Readonly<Record<CompatibilityMode, string>> = {
  full: "who publishes and who reads",
  producer: "who publishes",
  consumer: "who reads",
  none: "nobody",
};

/** Whether another rule protects somebody less, which needs the scope `admin`. */
export function isLooser(from: CompatibilityRule, to: CompatibilityRule): boolean {
  const [before, after] = [from.compatibility, to.compatibility];
  if (before === "none") return false;
  if (before !== after && after !== "full") return true;
  return from.compatibility_against === "all" && to.compatibility_against === "last";
}

/** Whether a subscription to this name or pattern gets the events of an action. */
export function matches(pattern: string, action: string): boolean {
  if (pattern === "*") return !action.startsWith("evreg.");
  return pattern === action || (pattern.endsWith(".*") && action.startsWith(pattern.slice(0, -1)));
}

export const isBuiltIn = ({ action }: Pick<Action, "action">): boolean => action.startsWith("evreg.");

/** What evreg declares itself nobody changes. */
export const mayChange = (action: Pick<Action, "action" | "application">): boolean =>
  !isBuiltIn(action) && may("write", action.application);
