import type { Failure } from "./failure.ts";

/** One payload held to one schema, elsewhere than on the thread that asks. */
export interface LongCheck {
  readonly schemata: unknown;
  /** Well-formed JSON. */
  readonly payload: Uint8Array;
  readonly maxSteps: number;
  /** Whether all that a payload breaks is to be told. */
  readonly explains?: boolean;
}

export interface LongCheckAnswer {
  /** Why the payload does not conform, or `undefined` when it does. */
  readonly failure: Failure | undefined;
  /** Whether the steps were enough to tell; if not, the failure says so. */
  readonly isDecided: boolean;
}

/** Who asks for a check. */
export interface LongCheckAsker {
  /** The same object for the same caller. */
  readonly caller: object;
  /** Ends what waits, which rejects with its reason. */
  readonly gone?: AbortSignal | undefined;
  /** Whether as much of the caller's may wait as it asks for: it bounds that itself. */
  readonly boundsItself?: boolean;
  /** No more than so many of the caller's may wait for this one to be taken; else as many as can be. */
  readonly maxWaiting?: number;
  /** For how many more payloads all that they break is told; each takes the other thread some time. */
  readonly explained?: { left: number };
}

export interface LongChecks {
  /**
   * Those of one caller in the order of asking, and callers by turns.
   * @throws EvregError `unavailable` when too much of the caller's waits, or the thread failed
   */
  check(check: LongCheck, asker: LongCheckAsker): Promise<LongCheckAnswer>;
}
