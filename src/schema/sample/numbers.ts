import { refillBudget } from "../budget.ts";
import { INTEGER_FORMATS } from "../formats.ts";
import type { JsonObject } from "../keywords.ts";
import { isMultipleOf } from "../multiple-of.ts";
import type { SeededRandom } from "./random.ts";

/** How far from its one bound a number may be, in steps. */
const SPREAD = 1_000;
const NUMBER_TRIES = 8;

interface Range {
  readonly low: number;
  readonly high: number;
  fits(value: number): boolean;
}

/** A number that all of the schemas allow, or `undefined`. */
export function numberFor(
  schemas: readonly JsonObject[],
  integer: boolean,
  random: SeededRandom,
): number | undefined {
  const formats = schemas.flatMap(({ format }) => {
    const bounds = INTEGER_FORMATS.get(String(format));
    return bounds === undefined ? [] : [bounds];
  });
  const whole = integer || formats.length > 0;
  const range = rangeOf(schemas, whole);
  const step = stepOf(schemas, whole, range);
  const from = range.low > -Infinity ? range.low : range.high < 0 ? range.high - SPREAD * step : 0;
  const low = Math.max(from, ...formats.map(([least]) => least));
  const to = range.high < Infinity ? range.high : low + SPREAD * step;
  const high = Math.min(to, ...formats.map(([, most]) => most));
  const [first, last] = [Math.ceil(low / step), Math.floor(high / step)];
  const places = Array.from({ length: NUMBER_TRIES }, () => random.whole(first, last));
  const candidates = [...places, first, last, first + 1, last - 1].map((place) => rounded(place * step));
  return [...candidates, low, high, (low + high) / 2].find((value) => range.fits(value));
}

function rangeOf(schemas: readonly JsonObject[], integer: boolean): Range {
  const values = (keyword: string): number[] =>
    schemas.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
  const [above, below] = [values("exclusiveMinimum"), values("exclusiveMaximum")];
  const low = Math.max(...values("minimum"), ...above);
  const high = Math.min(...values("maximum"), ...below);
  const factors = values("multipleOf");
  return {
    low,
    high,
    fits(value) {
      refillBudget();
      return (
        Number.isFinite(value) &&
        (!integer || Number.isInteger(value)) &&
        value >= low &&
        value <= high &&
        !above.includes(value) &&
        !below.includes(value) &&
        factors.every((factor) => isMultipleOf(value, factor))
      );
    },
  };
}

function stepOf(schemas: readonly JsonObject[], integer: boolean, { low, high }: Range): number {
  const factors = schemas.map((schema) => schema["multipleOf"]).filter((value) => typeof value === "number");
  let step = factors.reduce((one, other) => commonMultiple(one, other), integer ? 1 : 0);
  if (step === 0) step = high - low < 1 ? (high - low) / SPREAD : 0.01;
  return step > 0 ? step : 1;
}

/** A common multiple, where a small number of tries finds one. */
function commonMultiple(one: number, other: number): number {
  if (one === 0) return other;
  for (let times = 1; times <= SPREAD; times++) {
    const multiple = rounded(times * Math.max(one, other));
    refillBudget();
    if (isMultipleOf(multiple, Math.min(one, other))) return multiple;
  }
  return Math.max(one, other);
}

/** Without the last digits of a double, where 3 * 0.1 is more than 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(15)) + 0;
}
