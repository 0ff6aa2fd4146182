import { parentPort } from "node:worker_threads";
import { RawJson } from "../json/raw-json.ts";
import { budget } from "../schema/budget.ts";
import { compileSchema, type Validator } from "../schema/compile.ts";
import type { LongCheckAnswer } from "../schema/long-check.ts";
import type { LongCheckMessage } from "./check-thread.ts";

// The thread that checks payloads which take long, one at a time.

/** What the compiled schemas that are kept may take, as their `bytes` tell: some dozens of the largest. */
const KEPT_BYTES = 64 * 1024 * 1024;

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
/** By the text of their schemas; the one used last is the last. */
const validators = new Map<string, Validator>();
let keptBytes = 0;

port.on("message", ({ schemata, payload, maxSteps }: LongCheckMessage) => {
  const failure = validatorOf(schemata).validate(new RawJson(payload).value(), maxSteps);
  const answer: LongCheckAnswer = { failure, isDecided: budget.left >= 0 };
  port.postMessage(answer);
});

function validatorOf(schemata: string): Validator {
  const validator = validators.get(schemata) ?? compiled(schemata);
  validators.delete(schemata);
  validators.set(schemata, validator);
  return validator;
}

function compiled(schemata: string): Validator {
  const validator = compileSchema(JSON.parse(schemata));
  keptBytes += validator.bytes;
  for (const [oldest, { bytes }] of validators) {
    if (keptBytes <= KEPT_BYTES) break;
    validators.delete(oldest);
    keptBytes -= bytes;
  }
  return validator;
}
