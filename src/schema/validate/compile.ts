import { runSync, type Steps } from "../../runtime/yielding.ts";
import { budget, StepsExceeded, VALIDATION_STEPS } from "../limits.ts";
import { fieldName } from "../../json/field-path.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";
import { compilePatternsSteps, readSchemaSteps } from "../read.ts";
import { checkByAjv, isUsual } from "./ajv.ts";
import { type Failure, shortened, shortenedText } from "./errors.ts";
import { matches } from "./evaluate.ts";
import { type Fault, findFaults } from "./faults.ts";

/** Memory of a validator, measured. */
const OWN_BYTES = 6 * 1024;
const BYTES_PER_SCHEMA = 768;
const BYTES_PER_CHARACTER = 5;
/** An empty list has two characters, and takes more than those. */
const BYTES_PER_COLLECTION = 40;

/** A compiled schema. */
export interface Validator {
  /** Its memory, about. */
  readonly bytes: number;
  /**
   * Why the value does not conform, or `undefined` when it does. One that takes more steps does not conform. The value is
   * JSON-shaped and nested at most as deep as the scanner lets a payload be.
   * @param maxFailures how many failures are looked for
   */
  validate(value: unknown, maxSteps?: number, maxFailures?: number): Failure | undefined;
  /** Whether the value conforms; `undefined` where the steps are not enough. */
  conforms(value: unknown, maxSteps: number): boolean | undefined;
}

/**
 * Compiles a schema that `checkSchema` has accepted. Takes about a millisecond for twenty properties.
 * @throws `invalid` with the place, for one it would not have accepted
 */
export function compileSchema(schemata: unknown): Validator {
  return runSync(compileSchemaSteps(schemata));
}

export function* compileSchemaSteps(schemata: unknown): Steps<Validator> {
  const document = yield* readSchemaSteps(schemata);
  yield;
  return yield* compileDocumentSteps(document);
}

export function* compileDocumentSteps(document: SchemaDocument): Steps<Validator> {
  yield* compilePatternsSteps(document);
  yield;
  const { root, nodes, schemata, patterns } = document;
  const text = JSON.stringify(schemata);
  const check = isUsual(document) ? checkByAjv(document) : (value: unknown) => matches(root, value);
  return {
    bytes:
      OWN_BYTES +
      BYTES_PER_SCHEMA * nodes.length +
      BYTES_PER_CHARACTER * text.length +
      BYTES_PER_COLLECTION * (text.split(/[[{]/).length - 1) +
      patterns.bytes,
    validate(value, maxSteps = VALIDATION_STEPS, maxFailures = 1) {
      const conforms = limited(() => check(value), maxSteps);
      if (conforms === true) return undefined;
      if (conforms === false) return failureIn(root, value, maxFailures);
      const message = `takes more than ${maxSteps.toLocaleString("en")} steps to check against its schema`;
      return { field: "", message, value: null };
    },
    conforms: (value, maxSteps) => limited(() => check(value), maxSteps),
  };
}

/** Runs a check with a budget of steps; `undefined` where they, or the stack, are not enough. */
function limited<T>(run: () => T, maxSteps: number): T | undefined {
  budget.left = maxSteps;
  try {
    return run();
  } catch (error) {
    // References may be chained by the hundred, at each level of a payload.
    if (error instanceof RangeError) budget.left = -1;
    else if (!(error instanceof StepsExceeded)) throw error;
    return undefined;
  }
}

/** Takes the steps that are left. Where they or the stack are not enough, it says less. */
function failureIn(root: SchemaNode, value: unknown, maxFailures: number): Failure {
  const faults: Fault[] = [];
  try {
    findFaults(root, value, maxFailures, faults);
  } catch (error) {
    if (!(error instanceof StepsExceeded || error instanceof RangeError)) throw error;
    budget.left = Math.max(budget.left, 0);
  }
  const failures = faults.map(({ path, message, value: at }) => {
    return { field: fieldName(path), message: shortenedText(message), value: shortened(at) };
  });
  const [first = { field: "", message: "does not conform to the schema", value: null }, ...others] = failures;
  return maxFailures === 1 ? first : { ...first, others };
}

/** One payload to be checked against one schema, on another thread. */
export interface OffThreadCheck {
  readonly schemata: unknown;
  /** Well-formed JSON. */
  readonly payload: Uint8Array;
  readonly maxSteps: number;
  /** How many failures are looked for; one unless given. */
  readonly maxFailures?: number;
}

export interface OffThreadResult {
  /** Why the payload does not conform, or `undefined` when it does. */
  readonly failure: Failure | undefined;
  /** Whether the steps were enough to tell; if not, the failure says so. */
  readonly isDecided: boolean;
}

/** Who asks for a check. */
export interface ValidationCaller {
  /** Each caller has one value here. */
  readonly caller: unknown;
  /** Rejects the checks that wait, with its reason. */
  readonly gone?: AbortSignal | undefined;
  /** How many of the caller's checks may wait for this one to be taken, instead of what goes for all. */
  readonly maxWaiting?: number;
}

export interface OffThreadValidator {
  /**
   * Checks of one caller run in their order, and callers in rotation.
   * @throws EvregError `unavailable` when too many of the caller's wait, or the thread failed
   */
  check(check: OffThreadCheck, asker: ValidationCaller): Promise<OffThreadResult>;
}
