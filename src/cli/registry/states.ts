import type { Action } from "../../domain/action.ts";
import type { Problem } from "./document.ts";
import type { Values } from "./members.ts";
import type { Step } from "./plan.ts";
import type { Declared } from "./record.ts";

/**
 * The members that tell whether an action goes on and what comes instead. They are sent when all actions are there, as a
 * successor may be created by the same files.
 */
const STATE = new Set(["deprecated", "retired", "successor"]);

export function splitState(values: Values): { readonly state: Values; readonly others: Values } {
  const entries = Object.entries(values);
  return {
    state: Object.fromEntries(entries.filter(([name]) => STATE.has(name))),
    others: Object.fromEntries(entries.filter(([name]) => !STATE.has(name))),
  };
}

/** Successors that the service would refuse. What it alone can see, such as one that leads back, is left to it. */
export function stateProblems(declared: readonly Declared[], there: readonly Action[]): Problem[] {
  const before = new Map(there.map((action) => [action.action, action]));
  const names = new Set<unknown>([...before.keys(), ...declared.map(({ values }) => values["action"])]);
  return declared.flatMap(({ values, place }) => {
    const { action, successor } = values;
    if (typeof successor !== "string") return [];
    const wrong = (message: string): Problem[] => [{ place: place(["successor"]), message }];
    const present = before.get(String(action));
    const { deprecated = present?.deprecated, retired = present?.retired } = values;
    if (deprecated !== true && retired !== true) {
      return wrong(
        "successor is only for an action that is deprecated or retired; declare one of them as well",
      );
    }
    if (successor === action) return wrong("successor must be another action");
    if (names.has(successor)) return [];
    return wrong(
      `there is no action ${successor}, or none that this token may read, and no file declares it`,
    );
  });
}

/** One change of a state; they are made one after the other. */
export interface StateCall {
  readonly step: Step;
  readonly body: Values;
  /** The step has no other. */
  readonly isLast: boolean;
}

/**
 * Such an order that no successor is retired, or leads back, when it is named: first what goes on again or has another
 * successor loses the one it has, then each action comes after those that name it.
 */
export function stateCalls(steps: readonly Step[]): StateCall[] {
  const changing = steps.filter(({ state }) => Object.keys(state).length > 0);
  const ended = changing.filter(({ state }) => state["deprecated"] !== true && state["retired"] !== true);
  const cleared = ended.filter(({ state }) => (state["successor"] ?? null) === null);
  const rest = changing.filter((step) => !cleared.includes(step));
  const losing = rest.filter(({ changes }) =>
    changes.some(({ member, from }) => member === "successor" && typeof from === "string"),
  );
  return [
    ...cleared.map((step) => ({ step, body: step.state, isLast: true })),
    ...losing.map((step) => ({ step, body: { successor: null }, isLast: false })),
    ...namingFirst(rest).map((step) => ({ step, body: step.state, isLast: true })),
  ];
}

function namingFirst(steps: readonly Step[]): Step[] {
  const ordered = new Set<Step>();
  const open = new Set<Step>();
  const add = (step: Step): void => {
    if (ordered.has(step) || open.has(step)) return;
    open.add(step);
    for (const other of steps) if (other.state["successor"] === step.name) add(other);
    ordered.add(step);
  };
  for (const step of steps) add(step);
  return [...ordered];
}
