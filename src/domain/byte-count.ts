const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** For a person: `812 bytes`, `1.4 GB`; exact numbers are in the JSON. */
export function byteCount(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  let value = bytes;
  let unit = -1;
  do {
    value /= 1_000;
    unit += 1;
  } while (value >= 999.5 && unit < UNITS.length - 1);
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}
