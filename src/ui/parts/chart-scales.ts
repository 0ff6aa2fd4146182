const NICE = [1, 2, 5, 10];

/** The marks of an axis from 0 up to a value: at most so many, at round numbers that are apart by the same. */
export function marksUpTo(most: number, count: number): readonly number[] {
  const rough = Math.max(most, 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const apart = Math.max(1, NICE.find((factor) => factor * power >= rough)! * power);
  return Array.from({ length: Math.floor(most / apart) + 1 }, (_, index) => index * apart);
}

/** How far marks may be apart, in seconds: from 10 seconds over minutes and hours to a week. */
const APART_S = [
  10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
];

/**
 * The marks of an axis of time: at most so many, at round times of the reader's day.
 * @param zoneS how far the reader's clock is ahead of UTC
 * @returns in seconds, with how far they are apart
 */
export function timeMarks(
  from: number,
  to: number,
  count: number,
  zoneS: number,
): { readonly marks: readonly number[]; readonly apart: number } {
  const apart = APART_S.find((size) => (to - from) / size <= count) ?? APART_S.at(-1)!;
  const first = Math.ceil((from + zoneS) / apart) * apart - zoneS;
  const length = Math.max(0, Math.floor((to - first) / apart) + 1);
  return { marks: Array.from({ length }, (_, index) => first + index * apart), apart };
}
