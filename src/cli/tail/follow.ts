import type { StreamGap, StreamMessage, StreamQuery } from "../../domain/stream.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../io/interruption.ts";
import { note, type Output, writeOut } from "../io/output.ts";
import { EXIT } from "../usage-errors.ts";

export interface Tail<T> {
  readonly query: StreamQuery;
  /** Records to show before it ends. */
  readonly max: number | undefined;
  readonly output: Output;
  /** The record that a message is about; `undefined` for one that is not to be shown. */
  readonly recordOf: (message: StreamMessage) => T | undefined;
  /** Writes a record as a line for people. */
  readonly line: (record: T) => string;
  /** What to say once all that was there is shown and nothing more comes for now. */
  readonly waiting: string;
  /** Called when the stream is ready for the first time. */
  readonly ready?: () => Promise<void>;
}

/** Shows what a stream brings, a line each, until somebody has seen enough. Answers the exit code. */
export async function follow<T>(evreg: Evreg, tail: Tail<T>): Promise<number> {
  const { query, max = Infinity, output, recordOf, line, ready } = tail;
  const signal = interruption();
  let isBroken = false;
  let isReady = false;
  let shown = 0;
  const show = async (all: readonly T[]): Promise<void> => {
    const records = all.slice(0, max - shown);
    shown += records.length;
    if (records.length === 0) return;
    if (output.format === "table") await writeOut(records.map(line).join(""));
    else await output.lines(records);
  };
  const stream = await evreg.stream(query, {
    signal,
    disconnected() {
      if (!isBroken) note("Reconnecting …");
      isBroken = true;
    },
  });
  try {
    if (max === 0) return EXIT.done;
    for await (const batch of stream.batches()) {
      if (isBroken) note("Reconnected.");
      isBroken = false;
      const records: T[] = [];
      for (const message of batch) {
        if (message.type === "gap") {
          await show(records.splice(0));
          noteGap(message.data);
        } else if (message.type === "ready" && !isReady) {
          isReady = true;
          await show(records.splice(0));
          await ready?.();
          if (process.stderr.isTTY && shown < max) note(tail.waiting);
        }
        const record = recordOf(message);
        if (record !== undefined) records.push(record);
      }
      await show(records);
      if (shown >= max) return EXIT.done;
    }
    return EXIT.interrupted;
  } finally {
    await stream.close();
  }
}

const SENTENCES: Readonly<Record<StreamGap["reason"], string>> = {
  overrun:
    "The server remembers not all that happened in that time; evreg deliveries and evreg events list the rest.",
  restart: "The server has started again meanwhile: what it did in between may be missing here.",
  expired: "Some of these events are older than the server keeps them; they are missing here.",
  other_data: "The server has other data now, as after a restore; what happened in between may be missing.",
};

function noteGap({ reason }: StreamGap): void {
  note(`Gap: ${SENTENCES[reason]}`);
}
