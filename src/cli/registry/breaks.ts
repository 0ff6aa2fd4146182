import type { Schemata } from "../../domain/action.ts";
import { nextVersionName } from "../../domain/names.ts";
import { compareSchemas } from "../../schema/compatibility.ts";
import type { Plan, Registry, Step } from "./plan.ts";

/** The plan, with what each changed schema would break and under which free name it would not, before anything is done. */
export async function judged(plan: Plan, { actions }: Pick<Registry, "actions">): Promise<Plan> {
  const created = plan.steps.filter(({ noun, operation }) => noun === "action" && operation === "create");
  const taken = new Set([...actions.map(({ action }) => action), ...created.map(({ name }) => name)]);
  return { ...plan, steps: await Promise.all(plan.steps.map((step) => judgedStep(step, taken))) };
}

async function judgedStep(step: Step, taken: ReadonlySet<string>): Promise<Step> {
  const change = step.changes.find(({ member }) => member === "schemata");
  if (step.operation !== "change" || change === undefined) return step;
  // Both are schemas: the one is in force, the other was checked when the plan was made.
  const breaks = compareSchemas(change.from as Schemata, change.to as Schemata);
  if (breaks.length === 0) return step;
  let suggestion = nextVersionName(step.name);
  while (taken.has(suggestion)) suggestion = nextVersionName(suggestion);
  return { ...step, breaks, suggestion };
}
