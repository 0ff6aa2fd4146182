import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import type { CompatibilityMode, Schemata } from "../domain/action.ts";
import { RawJson } from "../json/raw-json.ts";
import { compare } from "../schema/compatibility/compare.ts";
import { sampleOf } from "../schema/generate/sample.ts";
import { budget } from "../schema/limits.ts";
import { compileSchema, type OffThreadResult, type Validator } from "../schema/validate/compile.ts";
import { parseText } from "../json/parse.ts";

// The thread that checks payloads which take long, compares schemas, and makes samples, one at a time.

/** Bytes that compiled schemas may take: some dozens of the largest. */
const MAX_COMPILED_BYTES = 64 * 1024 * 1024;

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
const validators = new LRUCache<string, Validator>({
  maxSize: MAX_COMPILED_BYTES,
  sizeCalculation: ({ bytes }) => bytes,
});

interface PayloadCheck {
  /** The schema as JSON. */
  readonly schemata: string;
  readonly payload: Uint8Array;
  readonly maxSteps: number;
  readonly maxFailures: number;
}

interface ComparedSchemas {
  readonly older: Schemata;
  readonly newer: Schemata;
  readonly mode: CompatibilityMode;
}

/** What the thread does, by the name of each kind of task. */
const work = {
  check({ schemata, payload, maxSteps, maxFailures }: PayloadCheck): OffThreadResult {
    const value = new RawJson(payload).value();
    const failure = compiled(schemata).validate(value, maxSteps, maxFailures);
    return { failure, isDecided: budget.left >= 0 };
  },
  comparison: ({ older, newer, mode }: ComparedSchemas) => compare(older, newer, { mode }),
  sample: (schemata: Schemata) => sampleOf(schemata),
};

export type ThreadWork = typeof work;

port.on("message", ({ kind, task }: { kind: keyof ThreadWork; task: never }) => {
  port.postMessage(work[kind](task));
});

function compiled(schemata: string): Validator {
  let validator = validators.get(schemata);
  if (validator === undefined) validators.set(schemata, (validator = compileSchema(parseText(schemata))));
  return validator;
}
