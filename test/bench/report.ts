import type { Observation } from "./rig.ts";
import { mb, ms, type Row } from "./row.ts";

const COLUMNS = ["scenario", "ceiling", "evreg", "figure", "target", "met"] as const;

/** The rows as a table for a terminal. */
export function table(rows: readonly Row[]): string {
  return columns([
    COLUMNS,
    ...rows.map((row) => [
      row.scenario,
      row.ceiling ?? "-",
      row.measured ?? row.figure,
      row.figure,
      row.target ?? "-",
      row.met === false ? "NO" : "yes",
    ]),
  ]);
}

/** What each scenario did to the servers it ran on. */
export function observationTable(observations: readonly Observation[]): string {
  return columns([
    [
      "server during",
      "on",
      "memory",
      "loop p99",
      "loop max",
      "loop CPU max",
      "main thread",
      "process",
      "CPU per 1,000",
    ],
    ...overRounds(observations).map((seen) => [
      seen.scenario,
      seen.on,
      mb(seen.peakMb),
      ms(seen.loopDelayP99Ms),
      ms(seen.loopDelayMaxMs),
      ms(seen.loopCpuMaxMs),
      `${Math.round(seen.mainThreadShare * 100)} %`,
      `${Math.round(seen.processShare * 100)} %`,
      seen.events === undefined ? "-" : ms((seen.processMs * 1_000) / seen.events),
    ]),
  ]);
}

/** One line a scenario and server, with the most of each over its rounds, and all events and processor time. */
function overRounds(observations: readonly Observation[]): Observation[] {
  const seen = new Map<string, Observation>();
  for (const next of observations) {
    const key = `${next.scenario} ${next.on}`;
    const before = seen.get(key);
    if (before === undefined) {
      seen.set(key, next);
      continue;
    }
    const most = (member: Exclude<keyof Observation, "scenario" | "on" | "events">): number =>
      Math.max(before[member], next[member]);
    const bothCount = before.events !== undefined && next.events !== undefined;
    seen.set(key, {
      scenario: next.scenario,
      on: next.on,
      events: bothCount ? before.events + next.events : undefined,
      processMs: before.processMs + next.processMs,
      peakMb: most("peakMb"),
      loopDelayP99Ms: most("loopDelayP99Ms"),
      loopDelayMaxMs: most("loopDelayMaxMs"),
      loopCpuMaxMs: most("loopCpuMaxMs"),
      mainThreadShare: most("mainThreadShare"),
      processShare: most("processShare"),
    });
  }
  return [...seen.values()];
}

function columns(lines: readonly (readonly string[])[]): string {
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
