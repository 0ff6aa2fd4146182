import { textOf } from "./node.ts";
import { scanJson } from "./scanner.ts";

/** Levels the largest envelope adds around a payload: `{ "data": [ { "payload": … } ] }`. */
export const ENVELOPE_LEVELS = 3;

/**
 * The value of a JSON document, under the scanner's strict rules. A key such as `__proto__` becomes an own property like
 * any other. Numbers past 2^53 are rounded and those past the range of a double become infinite.
 *
 * @param envelopeLevels levels allowed beyond those of a payload; by default room for a full payload in an envelope
 * @throws `malformed`, saying what is wrong at which line, column and byte
 */
export function parseJson(bytes: Uint8Array, envelopeLevels: number = ENVELOPE_LEVELS): unknown {
  scanJson(bytes, { envelopeLevels });
  return JSON.parse(textOf(bytes, { start: 0, end: bytes.length }));
}
