import { answerCalls } from "./calls.ts";
import { runClosedLoop } from "./load-closed.ts";
import { pace, type PacedLoop, type PacedLoopResult } from "./load-paced.ts";

const ROWID = /"rowid":(\d+)/;

let answeredNow = 0;

/** An event by its rowid and when publishing it was due, in milliseconds since the epoch with fractions. */
export type PublishedEvent = readonly [rowid: number, dueMs: number];

const calls = {
  closed: runClosedLoop,
  paced(options: PacedLoop): Promise<PacedLoopResult> {
    answeredNow = 0;
    const onAnswer = (): void => {
      answeredNow += 1;
    };
    return pace(options, { keepsBodies: false, onAnswer });
  },
  /** Answers of the paced run under way. */
  answered: (): number => answeredNow,
  /** The same, and which events were published when; those of the warm-up left out. */
  async pacedEvents(options: PacedLoop): Promise<PacedLoopResult & { readonly events: PublishedEvent[] }> {
    const events: PublishedEvent[] = [];
    const result = await pace(options, {
      keepsBodies: true,
      onAnswer: ({ body }, { atMs, counts }) => {
        const rowid = Number(ROWID.exec(body?.toString("latin1") ?? "")?.[1]);
        if (Number.isNaN(rowid)) throw new Error(`No rowid in the answer ${body?.toString()}`);
        if (counts) events.push([rowid, performance.timeOrigin + atMs]);
      },
    });
    return { ...result, events };
  },
};
export type LoadCalls = typeof calls;

answerCalls(calls);
