import { VALIDATION_STEPS } from "./limits.ts";

/**
 * The steps left to the check of the payload now being validated. One for all validators: a validation never yields, so
 * no two overlap. Compiled schemas count down `left` in place; everything else calls `spend`.
 *
 * Counting instead of a clock keeps the verdict on a payload the same on every machine.
 */
export const budget = {
  left: VALIDATION_STEPS,
  exceeded(): never {
    throw new BudgetExceeded();
  },
};

export class BudgetExceeded extends Error {}

export function spend(steps: number): void {
  budget.left -= steps;
  if (budget.left < 0) budget.exceeded();
}

export function refillBudget(steps = VALIDATION_STEPS): void {
  budget.left = steps;
}
