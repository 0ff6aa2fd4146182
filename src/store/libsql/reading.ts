import { BytesOut } from "./bytes-out.ts";
import type { ToWorker } from "./messages.ts";
import { READS, READS_IN_STEPS } from "./operations.ts";
import type { Steps } from "./read-steps.ts";
import type { Sql } from "./sql.ts";

/** A turn ends with the step that passes this; a flight that comes in meanwhile waits so long, and a step, at most. */
const TURN_MS = 1;

/** A read that is under way. */
export class Reading {
  readonly id: number;
  readonly #begin: (sql: Sql) => Steps<unknown>;
  readonly #out = new BytesOut();
  #steps: Steps<unknown> | undefined;

  constructor({ id, name, args }: ToWorker & { readonly kind: "read" }) {
    this.id = id;
    this.#begin = (sql) => begin(sql, name, args, this.#out);
  }

  /** Goes on for a turn; answers what was asked for once it is found. */
  go(sql: Sql): { readonly value: unknown; readonly bytes: ArrayBuffer | undefined } | undefined {
    this.#steps ??= this.#begin(sql);
    const endMs = performance.now() + TURN_MS;
    do {
      const step = this.#steps.next();
      if (step.done === true) return { value: step.value, bytes: this.#out.pack() };
    } while (performance.now() < endMs);
    return undefined;
  }
}

function* begin(sql: Sql, name: string, args: readonly unknown[], out: BytesOut): Steps<unknown> {
  if (name in READS_IN_STEPS) {
    const read = READS_IN_STEPS[name as keyof typeof READS_IN_STEPS] as (...all: unknown[]) => Steps<unknown>;
    return yield* read(sql, ...args, out);
  }
  const read = READS[name as keyof typeof READS] as (...all: unknown[]) => unknown;
  return read(sql, ...args, out);
}
