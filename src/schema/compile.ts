import { Ajv } from "ajv";
import { addKeywords } from "./ajv-keywords.ts";
import type { PartTable } from "./ajv-keywords.ts";
import { BudgetExceeded, refillBudget } from "./budget.ts";
import { checkCallGraph } from "./call-graph.ts";
import { readingSchema } from "./document.ts";
import type { SchemaDocument } from "./document.ts";
import { shortened } from "./failure.ts";
import type { Failure } from "./failure.ts";
import { faultOf } from "./fault.ts";
import { fieldName } from "./field-path.ts";
import { FORMATS } from "./formats.ts";
import { isObject, patternsIn } from "./keywords.ts";
import { VALIDATION_STEPS } from "./limits.ts";
import { forget } from "./memo.ts";
import { takeApart } from "./parts.ts";
import { PatternCompiler } from "./pattern.ts";
import { finish, type Task } from "./task.ts";

/** What a validator keeps, measured: so much by itself, and for each character of its schema. */
const OWN_BYTES = 10 * 1024;
const BYTES_PER_CHARACTER = 5;

/** Enough for any part, and for a few of those it calls. */
const WARMING_STEPS = 2_000;

/** A compiled schema. */
export interface Validator {
  /** About what it keeps in memory. */
  readonly bytes: number;
  /**
   * Why the value does not conform, or `undefined` when it does. The same value always gets the same answer. The value is
   * JSON-shaped and nested at most as deep as the scanner lets a payload be. One that takes more steps does not conform.
   */
  validate(value: unknown, maxSteps?: number): Failure | undefined;
  /** Only whether it conforms, `undefined` where so many steps are not enough to tell. */
  conforms(value: unknown, maxSteps: number): boolean | undefined;
}

/**
 * Compiles a schema that `checkSchema` has accepted. Takes about a millisecond for twenty properties.
 * @throws `invalid` with the place, for one it would not have accepted
 */
export function compileSchema(schemata: unknown): Validator {
  return finish(compilingSchema(schemata));
}

/** The same, a part a step. */
export function* compilingSchema(schemata: unknown): Task<Validator> {
  const document = yield* readingSchema(schemata);
  yield;
  const table: PartTable = [];
  const validator = yield* compilingDocument(document, new PatternCompiler(), table);
  yield* warming(table);
  return validator;
}

/**
 * Has each part run once. V8 translates a function when it is first called, which for hundreds of parts takes the first
 * payload some 50 ms.
 */
function* warming(table: PartTable): Task<void> {
  for (const validate of table) {
    yield;
    refillBudget(WARMING_STEPS);
    try {
      validate(null);
    } catch (error) {
      if (!(error instanceof BudgetExceeded)) throw error;
    } finally {
      refillBudget();
      forget();
    }
  }
}

export function compileDocument(document: SchemaDocument): Validator {
  return finish(compilingDocument(document));
}

/**
 * @param patterns may have compiled some of its patterns already
 * @param table gets the compiled parts
 */
export function* compilingDocument(
  document: SchemaDocument,
  patterns = new PatternCompiler(),
  table: PartTable = [],
): Task<Validator> {
  const parts = takeApart(document);
  yield;
  checkCallGraph(document.schemata, parts);
  yield;
  // Ajv asks for all patterns of a part in one go, so they are to be there by then.
  for (const { schema } of document.nodes) {
    if (!isObject(schema)) continue;
    for (const { pattern } of patternsIn(schema)) yield* patterns.compiling(pattern);
  }
  // One instance for one schema: Ajv keeps what it has compiled, so this one goes when its schema does.
  const ajv = new Ajv({
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    strict: false,
    strictNumbers: true,
    logger: false,
    messages: false,
    ownProperties: true,
    formats: FORMATS,
    // V8 optimises what is run often; Ajv's own passes take nine tenths of the time to compile and save none of it.
    code: { regExp: patterns.engine(), optimize: false },
  });
  addKeywords(ajv, table);
  for (const { schema } of parts) {
    yield;
    refillBudget();
    table.push(ajv.compile(schema));
    forget();
  }
  return {
    bytes: OWN_BYTES + BYTES_PER_CHARACTER * JSON.stringify(document.schemata).length + patterns.bytes,
    validate: (value, maxSteps = VALIDATION_STEPS) => check(table, value, maxSteps),
    conforms: (value, maxSteps) => judge(table, value, maxSteps),
  };
}

function judge(table: PartTable, value: unknown, maxSteps: number): boolean | undefined {
  refillBudget(maxSteps);
  try {
    return table[0]!(value);
  } catch (error) {
    if (!(error instanceof BudgetExceeded)) throw error;
    return undefined;
  } finally {
    forget();
  }
}

function check(table: PartTable, value: unknown, maxSteps: number): Failure | undefined {
  const validate = table[0]!;
  refillBudget(maxSteps);
  try {
    if (validate(value)) return undefined;
  } catch (error) {
    if (!(error instanceof BudgetExceeded)) throw error;
    const message = `takes more than ${maxSteps.toLocaleString("en")} steps to check against its schema`;
    return { field: "", message, value: null };
  } finally {
    forget();
  }
  const fault = faultOf(validate.errors ?? [], value);
  return { field: fieldName(fault.path), message: fault.message, value: shortened(fault.value) };
}
