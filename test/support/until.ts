/**
 * Waits for something that real sockets or another thread bring about, looking again every millisecond. A condition that
 * never comes fails with its name after `withinMs`.
 */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 50_000,
): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`Waited ${withinMs} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
