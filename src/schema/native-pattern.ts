const ESCAPE = String.raw`\\[dDwWsS^$\\.*+?()[\]{}|/]`;
const CHARACTER = String.raw`[^^$\\.*+?()[\]{}|/\ud800-\udfff]`;
const CLASS = String.raw`\[(?:${ESCAPE}|\\-|[^\\[\]\ud800-\udfff])+\]`;
const ATOM = `(?:[.]|${CHARACTER}|${ESCAPE}|${CLASS})`;
/** `^`, atoms each once or counted, and at most one that may repeat freely, in the last place. */
const STRAIGHT = new RegExp(
  String.raw`^\^(?:${ATOM}(?:\{\d{1,3}\})?)*(?:${ATOM}(?:[*+?]|\{\d{1,3},\d{0,3}\}))?\$?$`,
);

/**
 * The engine's own expression for a pattern along which it can never turn back, and so takes linear time as well: ids, codes
 * and slugs mostly have one, such as `^A-[0-9]{8}$`. `undefined` for all others.
 * @param pattern one that `toRe2Syntax` has taken
 */
export function nativePattern(pattern: string): RegExp | undefined {
  if (!STRAIGHT.test(pattern)) return undefined;
  try {
    return new RegExp(pattern, "u");
  } catch {
    // Such as `[a-\d]`, which only the older dialect has.
    return undefined;
  }
}
