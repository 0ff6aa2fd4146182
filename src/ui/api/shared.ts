import { useLayoutEffect, useState } from "preact/hooks";

/** A value of the whole page, such as who asks: anything may read and set it. */
export interface Shared<T> {
  value: T;
  /** The value, in a component that is drawn again when it changes. */
  readonly use: () => T;
}

export function shared<T>(first: T): Shared<T> {
  let now = first;
  const readers = new Set<(value: T) => void>();
  return {
    get value() {
      return now;
    },
    set value(next) {
      now = next;
      for (const read of readers) read(next);
    },
    use() {
      // A function would be taken for one that makes the value.
      const [, draw] = useState(() => now);
      useLayoutEffect(() => {
        const read = (value: T): void => draw(() => value);
        readers.add(read);
        // It may have changed since it was drawn.
        read(now);
        return () => void readers.delete(read);
      }, []);
      return now;
    },
  };
}
