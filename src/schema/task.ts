/**
 * Work made of small steps, with a place between each two where it may wait: each `next()` does one. What it leaves in
 * `budget` and `memo` is not there any more after such a place.
 */
export type Task<T> = Generator<void, T, void>;

/** Does all of it at once. */
export function finish<T>(task: Task<T>): T {
  for (;;) {
    const { done, value } = task.next();
    if (done === true) return value;
  }
}
