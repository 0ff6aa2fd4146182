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

export const numberText = (value: number): string => value.toLocaleString("en");

const KIB = 1_024;

/** `860 bytes`, `12.5 KiB`, `3.0 MiB`. */
export function sizeText(bytes: number): string {
  if (bytes < KIB) return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
  return bytes < KIB * KIB ? `${(bytes / KIB).toFixed(1)} KiB` : `${(bytes / KIB / KIB).toFixed(1)} MiB`;
}
