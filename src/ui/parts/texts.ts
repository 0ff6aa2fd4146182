const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** `84 ms`, `1.9 s`, `38 min`, `6 d`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${ms < 10 && ms % 1 !== 0 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= size) ?? UNITS[3];
  const count = ms / unitMs;
  return `${unit === "s" && count < 10 ? Number(count.toFixed(1)) : Math.floor(count)} ${unit}`;
}

/** The text with a capital at its beginning. */
export const capital = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

export const numberText = (value: number): string => value.toLocaleString("en");

const KIB = 1_024;

/** `860 bytes`, `12.5 KiB`, `3.0 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < KIB) return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
  return bytes < KIB * KIB ? `${(bytes / KIB).toFixed(1)} KiB` : `${(bytes / KIB / KIB).toFixed(1)} MiB`;
}

/** `1 event`, `1,204 events`. @param many where it is more than an s that is added */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;

/** The share of attempts that failed, in percent; `null` without attempts. */
export function failedShare(figures: {
  readonly delivered: number;
  readonly failed_attempts: number;
}): number | null {
  const attempts = figures.delivered + figures.failed_attempts;
  return attempts === 0 ? null : (100 * figures.failed_attempts) / attempts;
}

/** `100 %`, `99.4 %`, `< 0.1 %`; never a 0 or 100 that is not exactly that. */
export function percentText(percent: number): string {
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent < 100 && percent > 99.9) return "> 99.9 %";
  return `${Number(percent.toFixed(1))} %`;
}

/** What figures have as an error: `422` is a status, `timeout` is none. */
export const errorText = (error: string): string => (/^\d+$/.test(error) ? `HTTP ${error}` : error);

/** `1,064`, `5.3`: as exact as it is read. */
export const rateText = (value: number): string =>
  numberText(value >= 100 ? Math.round(value) : Number(value.toFixed(1)));
