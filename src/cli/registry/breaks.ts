import type { Schemata } from "../../domain/action.ts";
import type { CompatibilityMode } from "../../domain/compatibility.ts";
import { nextVersionName } from "../../domain/names.ts";
import type { ActionsPort } from "../../evreg.ts";
import type { Plan, Registry, Step } from "./plan.ts";

/** Schemas asked about at a time. */
const CONCURRENT_CHECKS = 8;

/** The plan, with what each changed schema would break and under which free name it would not, before anything is done. */
export async function judged(
  plan: Plan,
  { actions }: Pick<Registry, "actions">,
  port: Pick<ActionsPort, "check">,
): Promise<Plan> {
  const created = plan.steps.filter(({ noun, operation }) => noun === "action" && operation === "create");
  const taken = new Set([...actions.map(({ action }) => action), ...created.map(({ name }) => name)]);
  const steps: Step[] = [];
  for (let at = 0; at < plan.steps.length; at += CONCURRENT_CHECKS) {
    const some = plan.steps.slice(at, at + CONCURRENT_CHECKS);
    steps.push(...(await Promise.all(some.map((step) => judgedStep(step, taken, port)))));
  }
  return { ...plan, steps };
}

async function judgedStep(
  step: Step,
  taken: ReadonlySet<string>,
  port: Pick<ActionsPort, "check">,
): Promise<Step> {
  const change = step.changes.find(({ member }) => member === "schemata");
  if (step.operation !== "change" || change === undefined) return step;
  // A mode that comes with the schema holds for it already.
  const mode = step.body["compatibility"] as CompatibilityMode | undefined;
  const candidate = { schemata: change.to as Schemata, ...(mode === undefined ? {} : { mode }) };
  const { breaks } = (await port.check(step.name, candidate)).data;
  if (breaks.length === 0) return step;
  let suggestion = nextVersionName(step.name);
  while (taken.has(suggestion)) suggestion = nextVersionName(suggestion);
  return { ...step, breaks, suggestion };
}
