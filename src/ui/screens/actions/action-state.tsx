import {
  type Action,
  type ActionSettings,
  actionState,
  type CompatibilityMode,
} from "../../../domain/action.ts";
import { isReservedName } from "../../../domain/names.ts";
import { may } from "../../api/identity.ts";

const STATES = {
  active: { word: "In force", tone: "active", means: "Events can be published." },
  deprecated: { word: "Deprecated", tone: "waiting", means: "Publishers are told to move on." },
  retired: { word: "Retired", tone: "failed", means: "Publishing is refused. Reading and deliveries go on." },
} as const;

/** Whether publishing goes on, as a badge beside a title. */
export function ActionBadge({ action }: { readonly action: ActionSettings }) {
  const { word, tone, means } = STATES[actionState(action)];
  return (
    <span class={`badge ${tone}`} title={means}>
      {word}
    </span>
  );
}

/** Shows the state in a list, where only what is not in force says so. */
export function ActionWord({ action }: { readonly action: ActionSettings }) {
  const state = actionState(action);
  if (state === "active") return <span class="muted">In force</span>;
  return <span class={state === "retired" ? "danger-text" : "warn-text"}>{STATES[state].word}</span>;
}

export const PROTECTED: Readonly<Record<CompatibilityMode, string>> = {
  full: "who publishes and who reads",
  producer: "who publishes",
  consumer: "who reads",
  none: "nobody",
};

/** What evreg declares itself nobody changes. */
export const mayChange = (action: Pick<Action, "action" | "application">): boolean =>
  !isReservedName(action.action) && may("write", action.application);
