/** `npm run test:faults` asks for the long form; the ordinary suite runs the short one. */
export const isLong = process.env["FAULTS"] === "long";

/** How often something is done. */
export function rounds(short: number, long: number): number {
  return isLong ? long : short;
}

/** Every so-manieth of them, from the first; the long form takes all. */
export function someOf<T>(all: readonly T[], every: number): readonly T[] {
  return isLong ? all : all.filter((_, index) => index % every === 0);
}

/** The one line a fault's long form leaves behind. */
export function report(fault: string, figures: object): void {
  if (!isLong) return;
  const words = Object.entries(figures).map(([name, value]) => `${name} ${String(value)}`);
  process.stdout.write(`\n${fault}: ${words.join(", ")}\n`);
}
