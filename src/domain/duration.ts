const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

type DurationUnit = keyof typeof UNIT_MS;

/** Those of times that people think of in minutes at least. */
export const MINUTES_AND_UP: readonly DurationUnit[] = ["m", "h", "d"];

/** The shortest text that `parseDurationMs` reads as this: `90m`, `12h`, `5d`. */
export function durationText(ms: number): string {
  const [unit, length] = Object.entries(UNIT_MS).findLast(([, unitMs]) => ms % unitMs === 0) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

/** `500ms`, `2s`, `30m`, `12h` or `90d` in milliseconds; `undefined` for any other text, and for a unit that is not asked for. */
export function parseDurationMs(
  text: string,
  units = Object.keys(UNIT_MS) as readonly DurationUnit[],
): number | undefined {
  const [, count, name] = /^(\d+)([a-z]+)$/.exec(text) ?? [];
  const unit = units.find((known) => known === name);
  return unit === undefined ? undefined : Number(count) * UNIT_MS[unit];
}
