import {
  addRun,
  type EndedMinute,
  type SeriesRun,
  type StatsCounts,
} from "../../metrics/stats/stats-counts.ts";
import { Tally } from "../../metrics/stats/tally.ts";
import type { StatsRow } from "../../store/stats.ts";

interface Subject extends Pick<StatsRow, "kind" | "application" | "action" | "subscription"> {
  readonly runs: SeriesRun[];
}

/** Rows that one write adds: some milliseconds of the store's thread. */
const ROWS_AT_ONCE = 150;

/** What happened in a minute as it is stored, everything first, in portions for one write each. */
export function* rowsOf(stats: StatsCounts, { startMs, slot }: EndedMinute): Generator<readonly StatsRow[]> {
  const subjects = new Map<string, Subject>();
  const note = (key: string, run: SeriesRun, subject: () => Omit<Subject, "runs">): void => {
    let known = subjects.get(key);
    if (known === undefined) subjects.set(key, (known = { ...subject(), runs: [] }));
    known.runs.push(run);
  };
  const all: Subject = { kind: "all", application: "", runs: [] };
  subjects.set("", all);
  for (const run of stats.runs(slot, () => true)) {
    const { application, action, subscription } = run.series;
    all.runs.push(run);
    note(`a${application}`, run, () => ({ kind: "application", application }));
    // A name of an action has no space.
    if (action !== "")
      note(`n${action} ${application}`, run, () => ({ kind: "action", application, action }));
    if (subscription > 0) {
      note(`s${subscription}`, run, () => ({ kind: "subscription", application, subscription }));
    }
  }
  let rows: StatsRow[] = [];
  for (const { runs, ...subject } of subjects.values()) {
    const tally = new Tally();
    for (const run of runs) {
      addRun(tally, slot, run);
      const { lastError, lastErrorMs } = run.series;
      if (lastError !== undefined && lastErrorMs >= startMs) tally.noteError(lastError, lastErrorMs);
    }
    rows.push({ ...subject, ...tally.stored() });
    if (rows.length < ROWS_AT_ONCE) continue;
    yield rows;
    rows = [];
  }
  if (rows.length > 0) yield rows;
}
