import { parseArgs } from "node:util";
import { HISTORY_SIZES } from "./history.ts";

/** @param names what `--only` may name */
export function readArguments(args: readonly string[], names: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      rounds: { type: "string", default: "3" },
      size: { type: "string", default: "2m" },
      json: { type: "string", default: "bench-results.json" },
      strict: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
    },
  });
  const only = values.only?.split(",");
  const unknown = only?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Error(`There is no scenario ${unknown}; there are ${names.join(", ")}.`);
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds takes a whole number from 1.");
  const historyEvents = HISTORY_SIZES[values.size];
  if (historyEvents === undefined)
    throw new Error(`--size takes one of ${Object.keys(HISTORY_SIZES).join(", ")}.`);
  return { only, rounds, historyEvents, jsonFile: values.json, strict: values.strict, list: values.list };
}
