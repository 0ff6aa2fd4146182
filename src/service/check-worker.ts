import { parentPort } from "node:worker_threads";
import { RawJson } from "../json/raw-json.ts";
import { compileSchema, type Validator } from "../schema/compile.ts";
import type { LongCheck, LongCheckAnswer } from "./check-thread.ts";
import { Recent } from "./recent.ts";

// The thread that checks payloads which take long, one at a time.

const MAX_SCHEMAS = 16;

const port = parentPort;
if (port === null) throw new Error("this module runs as a worker thread");
/** By the text of their schemas. */
const validators = new Recent<Validator>(MAX_SCHEMAS);

port.on("message", ({ schemata, payload, maxSteps }: LongCheck) => {
  const answer: LongCheckAnswer = {
    failure: validatorOf(schemata).validate(new RawJson(payload).value(), maxSteps),
  };
  port.postMessage(answer);
});

function validatorOf(schemata: string): Validator {
  const known = validators.get(schemata);
  if (known !== undefined) return known;
  const validator = compileSchema(JSON.parse(schemata));
  validators.set(schemata, validator);
  return validator;
}
