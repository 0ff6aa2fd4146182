import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import { EvregError } from "../domain/error.ts";
import { RawJson } from "../json/raw-json.ts";
import { compare, type Verdict } from "../schema/compatibility/compare.ts";
import { Sampler } from "../schema/generate/generator.ts";
import { budget, MAX_FAILURES } from "../schema/limits.ts";
import { typesFile } from "../schema/typescript/file.ts";
import {
  compileExplainer,
  compileSchema,
  type Explainer,
  type OffThreadResult,
  type Validator,
} from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";
import type { ThreadCheck, ThreadComparison, ThreadTask } from "./validation-thread.ts";

// The thread that checks payloads which take long, compares schemas, and makes samples and types, one at a time.

/** Bytes that compiled schemas of each kind may take: some dozens of the largest. */
const MAX_COMPILED_BYTES = 64 * 1024 * 1024;

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
const validators = compiledCache<Validator>();
const explainers = compiledCache<Explainer>();

port.on("message", (task: ThreadTask) => {
  port.postMessage(answerTo(task));
});

function answerTo(task: ThreadTask): unknown {
  if (task.kind === "check") return checked(task);
  if (task.kind === "comparison") return compared(task);
  return task.kind === "types" ? typesFile([task.action]) : new Sampler(task.schemata).sample(task.seed, 0);
}

function checked({ schemata, payload, maxSteps, explains }: ThreadCheck): OffThreadResult {
  const value = new RawJson(payload).value();
  const found = compiled(validators, schemata, compileSchema).validate(value, maxSteps);
  const isDecided = budget.left >= 0;
  const isExplained = explains && found !== undefined && isDecided;
  return { failure: isExplained ? explained(found, schemata, value, maxSteps) : found, isDecided };
}

/** With all failures in view, the branch that a value was meant for is known better, and so is what is wrong with it. */
function explained(found: Failure, schemata: string, value: unknown, maxSteps: number): Failure {
  const all = compiled(explainers, schemata, compileExplainer).explain(value, maxSteps);
  const same = all.find(({ field, message }) => field === found.field && message === found.message);
  const first = same ?? all[0] ?? found;
  return { ...first, others: all.filter((one) => one !== first).slice(0, MAX_FAILURES - 1) };
}

function compared({ older, newer, mode }: ThreadComparison): Verdict {
  try {
    return compare(older, newer, { mode });
  } catch (error) {
    // An earlier version stored the older one, which is not valid: nothing was ever published under it, so nothing breaks.
    if (error instanceof EvregError && error.code === "invalid") return { breaks: [], total: 0, steps: 0 };
    throw error;
  }
}

function compiledCache<T extends { readonly bytes: number }>(): LRUCache<string, T> {
  return new LRUCache({ maxSize: MAX_COMPILED_BYTES, sizeCalculation: ({ bytes }) => bytes });
}

function compiled<T extends object>(
  cache: LRUCache<string, T>,
  schemata: string,
  compile: (schemata: unknown) => T,
): T {
  let one = cache.get(schemata);
  if (one === undefined) cache.set(schemata, (one = compile(JSON.parse(schemata))));
  return one;
}
