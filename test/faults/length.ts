import { test } from "vitest";
import { LENGTHS, type Tested } from "./lengths.ts";

/** `npm run test:faults` asks for the long form; the ordinary suite runs the short one. */
export const isLong = process.env["FAULTS"] === "long";

/** A test of the long form alone. */
export const inLongForm = test.skipIf(!isLong);

/** How much of each thing this file's test does now. */
export function lengthOf<File extends Tested>(file: File): Record<keyof (typeof LENGTHS)[File], number> {
  const lengths = Object.entries<readonly [number, number]>(LENGTHS[file]);
  return Object.fromEntries(lengths.map(([what, [short, long]]) => [what, rounds(short, long)])) as Record<
    keyof (typeof LENGTHS)[File],
    number
  >;
}

/** What follows from the length: a pause, a limit of time, a least number. */
export function rounds(short: number, long: number): number {
  return isLong ? long : short;
}

/** So many of them, from the first on and evenly spread. */
export function someOf<T>(all: readonly T[], count: number): readonly T[] {
  return Array.from(
    { length: Math.min(count, all.length) },
    (_, index) => all[Math.floor((index * all.length) / count)]!,
  );
}

/** The one line a fault's long form leaves behind. */
export function report(fault: string, figures: object): void {
  if (!isLong) return;
  const words = Object.entries(figures).map(([name, value]) => `${name} ${String(value)}`);
  process.stdout.write(`\n${fault}: ${words.join(", ")}\n`);
}
