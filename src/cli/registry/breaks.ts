import type { Schemata } from "../../domain/action.ts";
import { compareSchemas } from "../../schema/compatibility.ts";
import type { Plan, Step } from "./plan.ts";

/** The plan, with what each changed schema would break, found before anything is done. */
export async function judged(plan: Plan): Promise<Plan> {
  return { ...plan, steps: await Promise.all(plan.steps.map(judgedStep)) };
}

async function judgedStep(step: Step): Promise<Step> {
  const change = step.changes.find(({ member }) => member === "schemata");
  if (step.operation !== "change" || change === undefined) return step;
  // Both are schemas: the one is in force, the other was checked when the plan was made.
  return { ...step, breaks: compareSchemas(change.from as Schemata, change.to as Schemata) };
}
