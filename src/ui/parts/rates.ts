import { numberText } from "./texts.ts";

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
