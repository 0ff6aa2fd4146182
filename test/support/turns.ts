/** Does some work, and answers how many turns the event loop had meanwhile. */
export async function turnsDuring(work: (soFar: () => number) => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await work(() => turns);
  isOver = true;
  return turns;
}
