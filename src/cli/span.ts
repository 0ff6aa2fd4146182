const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90d`, `12h` or `30m` in milliseconds; `undefined` for any other text. */
export function spanMs(text: string): number | undefined {
  const span = /^(\d+)([mhd])$/.exec(text);
  return span === null ? undefined : Number(span[1]) * (UNIT_MS[span[2] ?? ""] ?? 0);
}
