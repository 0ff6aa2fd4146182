import { parentPort } from "node:worker_threads";
import { RawJson } from "../json/raw-json.ts";
import { budget, FAILURES_TOLD } from "../schema/limits.ts";
import {
  compileExplainer,
  compileSchema,
  type Explainer,
  type LongCheckAnswer,
  type Validator,
} from "../schema/validate/compile.ts";
import type { Failure } from "../schema/validate/errors.ts";
import type { LongCheckMessage } from "./validation-thread.ts";

// The thread that checks payloads which take long, one at a time.

/** What the compiled schemas that are kept of each kind may take, as their `bytes` tell: some dozens of the largest. */
const KEPT_BYTES = 64 * 1024 * 1024;

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
const validators = new Map<string, Validator>();
const explainers = new Map<string, Explainer>();

port.on("message", ({ schemata, payload, maxSteps, explains }: LongCheckMessage) => {
  const value = new RawJson(payload).value();
  const found = kept(validators, schemata, compileSchema).validate(value, maxSteps);
  const isDecided = budget.left >= 0;
  const isExplained = explains && found !== undefined && isDecided;
  const failure = isExplained ? { ...found, others: others(found, schemata, value, maxSteps) } : found;
  const answer: LongCheckAnswer = { failure, isDecided };
  port.postMessage(answer);
});

function others(found: Failure, schemata: string, value: unknown, maxSteps: number): readonly Failure[] {
  const all = kept(explainers, schemata, compileExplainer).explain(value, maxSteps);
  const at = all.findIndex(({ field, message }) => field === found.field && message === found.message);
  // Of what no branch of a schema allows either may tell another reason for the same place.
  const rest = all.filter(({ field }, index) => (at === -1 ? field !== found.field : index !== at));
  return rest.slice(0, FAILURES_TOLD - 1);
}

/** What a schema was compiled to, by its text; the one used last is the last. */
function kept<T extends { readonly bytes: number }>(
  compiled: Map<string, T>,
  schemata: string,
  compile: (schemata: unknown) => T,
): T {
  const one = compiled.get(schemata) ?? compile(JSON.parse(schemata));
  compiled.delete(schemata);
  compiled.set(schemata, one);
  let bytes = 0;
  for (const each of compiled.values()) bytes += each.bytes;
  for (const [oldest, each] of compiled) {
    if (bytes <= KEPT_BYTES || each === one) break;
    compiled.delete(oldest);
    bytes -= each.bytes;
  }
  return one;
}
