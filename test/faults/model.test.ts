import * as fc from "fast-check";
import { afterAll, test } from "vitest";
import { openLocalService, type LocalService } from "../support/local-service.ts";
import { lengthOf, report } from "./length.ts";
import { Model } from "./model.ts";
import { agree, agreeOnAttempts } from "./model-agrees.ts";
import { createActions, type Real, STEPS } from "./model-steps.ts";

// The promise under test: whatever is asked in whatever order, lists, totals, states and what is due are those of a model
// that is plain enough to be right.

const { sequences: runs } = lengthOf("faults/model");
const STEPS_OF_A_RUN = 60;
/** With more on one store, what earlier runs left behind is felt. */
const RUNS_OF_A_STORE = 100;
const LONG_MS = 86_400_000;

let local: LocalService | undefined;
let run = 0;

afterAll(() => local?.close());

test(
  `${runs} random sequences of commands agree with the model`,
  { timeout: 60_000 + runs * 500 },
  async () => {
    const done = { runs: 0, steps: 0 };
    const sequences = fc.commands([...STEPS], { maxCommands: STEPS_OF_A_RUN, size: "max" });
    const property = fc.asyncProperty(sequences, async (commands) => {
      const real = await nextReal();
      const model = new Model();
      try {
        await createActions(model, real);
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await agree(model, real, done.runs);
        await agreeOnAttempts(model, real);
        for (const { rowid } of model.living) await real.evreg.subscriptions.delete(rowid);
        await real.store.queue.releaseExpired(real.clock.now() + LONG_MS);
      } catch (error) {
        // What it left behind must not be met by the runs that look for a shorter sequence.
        run = 0;
        throw error;
      }
      done.runs += 1;
      done.steps += [...commands].length;
    });
    await fc.assert(property, { numRuns: runs });
    report("random commands", { ...done, violations: 0 });
  },
);

async function nextReal(): Promise<Real> {
  if (run % RUNS_OF_A_STORE === 0) {
    await local?.close();
    local = await openLocalService();
  }
  run += 1;
  return { ...local!, run };
}
