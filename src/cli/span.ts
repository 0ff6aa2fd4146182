const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `90d`, `12h`, `30m`, `2s` or `500ms` in milliseconds; `undefined` for any other text. */
export function spanMs(text: string): number | undefined {
  const span = /^(\d+)(ms|[smhd])$/.exec(text);
  return span === null ? undefined : Number(span[1]) * (UNIT_MS[span[2] ?? ""] ?? 0);
}
