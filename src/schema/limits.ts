/** What a schema may cost. It comes from outside and runs inside: each figure bounds one of its costs. */
export const SCHEMA_LIMITS = {
  /** Bytes of the document written as JSON. */
  bytes: 256 * 1024,
  /** Bytes of a filter, which is loaded with each claimed delivery. */
  filterBytes: 64 * 1024,
  /** Levels of objects and arrays in the document. */
  depth: 64,
  /** Schemas in the document, definitions included. */
  subschemas: 5_000,
  /** Values of one `enum`. */
  enumValues: 1_000,
  /** Characters of one pattern. */
  patternLength: 1_024,
  /** Schemas chained by `$ref`, `allOf` and the like, which are all checked for one value. */
  chained: 1_000,
  /** Steps of building the automata of all patterns of a schema, some 8 bytes each. */
  automatonSteps: 1_800_000,
} as const;

/** Steps that the check of one value may take. A step is a subschema or a character of a pattern, and takes up to 25 ns. */
export const VALIDATION_STEPS = 10_000_000;

/**
 * Steps that the check of a published event may take. Ordinary payloads take up to 3 steps a byte; a small hostile one ends
 * after some 20 ms.
 */
export function publishSteps(payloadBytes: number): number {
  return 2_000_000 + 5 * payloadBytes;
}

/** Steps that the thread that answers requests takes itself: at most 10 ms, and nearly all payloads need less. */
export const SHORT_CHECK_STEPS = 100_000;
/** That thread does not parse larger payloads either, as that takes up to 60 ns a byte. */
export const SHORT_CHECK_BYTES = 64 * 1024;

/** Steps for a filter: one event may have to pass many. */
export const FILTER_STEPS = 300_000;

/** Failures of one payload that are reported, and their bytes of JSON together. */
export const MAX_FAILURES = 20;
export const MAX_FAILURE_BYTES = 16 * 1024;

/** Bytes up to which an offending value, as JSON, and its message are reported in full. */
export const VALUE_BYTES = 1_024;

/** The steps that some work may still take. Steps, unlike time, give the same verdict or sample on every machine. */
export class StepBudget {
  left: number;

  constructor(steps: number) {
    this.left = steps;
  }

  /** @throws `StepsExceeded` */
  spend(steps: number): void {
    this.left -= steps;
    if (this.left < 0) this.exceeded();
  }

  exceeded(): never {
    throw new StepsExceeded();
  }
}

export class StepsExceeded extends Error {}

/**
 * The budget of the check that runs now: validations never yield, so no two overlap. Each check sets `left` first, and what takes long
 * decrements it.
 */
export const budget = new StepBudget(VALIDATION_STEPS);

export function spend(steps: number): void {
  budget.spend(steps);
}
