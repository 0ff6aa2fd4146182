import { StoreWorker } from "../thread/worker.ts";
import { fromDatabase, toDatabase } from "./database-place.ts";
import { fromPath, toFolder } from "./file-place.ts";
import {
  continueNumbers,
  makeSame,
  MoveProgress,
  type OpenSource,
  type OpenTarget,
  type SourceFacts,
} from "./pass.ts";
import type { MoveReport, NamedPlace } from "./move.ts";

async function moveData(from: NamedPlace, to: NamedPlace, memory: SharedArrayBuffer): Promise<MoveReport> {
  const startedMs = performance.now();
  const progress = new MoveProgress(memory);
  let target: OpenTarget | undefined;
  try {
    const report = await withSource(from, async (source) => {
      target = await openTarget(to, source);
      const pass = await makeSame(source, target, progress);
      const moved = { data_id: source.dataId, ...pass };
      if (!source.isAtRest) return { ...moved, finished: false, kept: null };
      await continueNumbers(source, target);
      return { ...moved, finished: true, kept: await source.leave() };
    });
    // Until here neither place has data for servers: two of them must not serve the same.
    if (report.finished) await target!.arrive();
    return { ...report, took_ms: Math.round(performance.now() - startedMs) };
  } finally {
    await target?.close();
  }
}

/** Opens the data of a place for `act`. Once it has resolved, what `leave` did is durable. */
function withSource<T>({ place, url }: NamedPlace, act: (source: OpenSource) => Promise<T>): Promise<T> {
  return url === undefined ? fromPath(place, act) : fromDatabase(url, place, act);
}

/** Opens the data that are to become those of the source, which may have been begun. */
function openTarget({ place, url }: NamedPlace, source: SourceFacts): Promise<OpenTarget> {
  return url === undefined ? toFolder(place, source) : toDatabase(url, place, source);
}

function opensNothing(): never {
  throw new Error("this thread only does tasks");
}

new StoreWorker({
  operations: {},
  tasks: { moveData },
  openToWrite: opensNothing,
  openToRead: opensNothing,
}).start();
