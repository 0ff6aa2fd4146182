import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { EvregError } from "../domain/error.ts";
import { RawJson } from "../json/raw-json.ts";
import { compare, type ComparisonResult } from "../schema/compatibility/compare.ts";
import { Sampler } from "../schema/generate/generator.ts";
import { budget } from "../schema/limits.ts";
import { typesFile } from "../schema/typescript/file.ts";
import { compileSchema, type OffThreadResult, type Validator } from "../schema/validate/compile.ts";
import type { TaskOf, ThreadTask } from "./validation-thread.ts";

// The thread that checks payloads which take long, compares schemas, and makes samples and types, one at a time.

/** Bytes that compiled schemas may take: some dozens of the largest. */
const MAX_COMPILED_BYTES = 64 * 1024 * 1024;

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
const validators = new LRUCache<string, Validator>({
  maxSize: MAX_COMPILED_BYTES,
  sizeCalculation: ({ bytes }) => bytes,
});

port.on("message", (task: ThreadTask) => {
  port.postMessage(answerTo(task));
});

function answerTo(task: ThreadTask): unknown {
  if (task.kind === "check") return checked(task);
  if (task.kind === "comparison") return compared(task);
  return task.kind === "types" ? typesFile([task.action]) : new Sampler(task.schemata).sample(task.seed, 0);
}

function checked({ schemata, payload, maxSteps, maxFailures }: TaskOf<"check">): OffThreadResult {
  const value = new RawJson(payload).value();
  const failure = compiled(schemata).validate(value, maxSteps, maxFailures);
  return { failure, isDecided: budget.left >= 0 };
}

function compared({ older, newer, mode }: TaskOf<"comparison">): ComparisonResult {
  try {
    return compare(older, newer, { mode });
  } catch (error) {
    // An earlier version stored the older one, which is not valid: nothing was ever published under it, so nothing breaks.
    if (error instanceof EvregError && error.code === "invalid") return { breaks: [], total: 0, steps: 0 };
    throw error;
  }
}

function compiled(schemata: string): Validator {
  let validator = validators.get(schemata);
  if (validator === undefined) validators.set(schemata, (validator = compileSchema(JSON.parse(schemata))));
  return validator;
}
