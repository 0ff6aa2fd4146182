/**
 * A read that may take long, done in steps of a millisecond or so each: between two of them the store's thread writes
 * what waits to be written. What a step read is what was committed then; nothing stays open between two steps.
 */
export type Steps<T> = Generator<void, T, void>;

/** All steps in one go, for a read that must not be interrupted. */
export function complete<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Goes several ways to the same answer by turns, a step each, and takes the first: where it cannot be known which one is
 * short, this costs at most as often the shortest as there are ways. A way that answers `undefined` gave up; not all may.
 */
export function* race<T>(ways: readonly Steps<T | undefined>[]): Steps<T> {
  let open = [...ways];
  while (open.length > 0) {
    const onward: Steps<T | undefined>[] = [];
    for (const way of open) {
      const step = way.next();
      if (step.done !== true) onward.push(way);
      else if (step.value !== undefined) return step.value;
      yield;
    }
    open = onward;
  }
  throw new Error("no way of a read led to an answer");
}
