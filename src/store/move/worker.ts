import { StoreWorker } from "../thread/worker.ts";
import { databasePlace } from "./database-place.ts";
import { filePlace } from "./file-place.ts";
import { continueNumbers, makeSame, type MovePlace, MoveProgress, type OpenTarget } from "./pass.ts";
import type { MoveReport, NamedPlace } from "./move.ts";

async function moveData(from: NamedPlace, to: NamedPlace, memory: SharedArrayBuffer): Promise<MoveReport> {
  const startedMs = performance.now();
  const progress = new MoveProgress(memory);
  let target: OpenTarget | undefined;
  try {
    const report = await placeOf(from).from(async (source) => {
      target = await placeOf(to).to(source);
      const pass = await makeSame(source, target, progress);
      const moved = { data_id: source.dataId, ...pass };
      if (!source.isAtRest) return { ...moved, finished: false, kept: null };
      await continueNumbers(source, target);
      return { ...moved, finished: true, kept: await source.leave(to.place) };
    });
    // Until here neither place has data for servers: two of them must not serve the same.
    if (report.finished) await target!.arrive();
    return { ...report, took_ms: Math.round(performance.now() - startedMs) };
  } finally {
    await target?.close();
  }
}

function placeOf({ place, url, prepares }: NamedPlace): MovePlace {
  return url === undefined ? filePlace(place) : databasePlace({ url, prepares }, place);
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
