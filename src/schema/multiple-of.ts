import { spend } from "./budget.ts";

const STEPS_PER_DECIMAL = 24;

/**
 * Whether a number is a multiple of another as they are written in decimal: 19.99 is a multiple of 0.01, although dividing
 * the two doubles leaves a remainder.
 */
export function isMultipleOf(value: number, factor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isSafeInteger(factor)) return value % factor === 0;
  if (!Number.isFinite(value) || !Number.isFinite(factor)) return value === 0;
  const a = decimalOf(value);
  const b = decimalOf(factor);
  // The further apart the two are, the longer are the integers divided.
  spend(STEPS_PER_DECIMAL + 2 * Math.abs(a.exponent - b.exponent));
  const exponent = Math.min(a.exponent, b.exponent);
  return (
    (a.digits * 10n ** BigInt(a.exponent - exponent)) % (b.digits * 10n ** BigInt(b.exponent - exponent)) ===
    0n
  );
}

function decimalOf(value: number): { digits: bigint; exponent: number } {
  const [mantissa = "0", exponent = "0"] = value.toExponential().split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}
