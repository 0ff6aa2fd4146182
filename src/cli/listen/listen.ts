import { emitKeypressEvents } from "node:readline";
import { consume, type ConsumedDelivery } from "../../client/consume.ts";
import { EvregError } from "../../domain/error.ts";
import type { FinishedPull, PulledDelivery } from "../../domain/pull.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { note } from "../io/output.ts";
import { escapeControl } from "../io/text.ts";
import type { LocalAttempt } from "./forward.ts";
import type { ListenReport } from "./report.ts";
import { listenerName, nameOf } from "./subscriptions.ts";

export interface ListenOptions {
  readonly attempt: LocalAttempt;
  readonly report: ListenReport;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Ends it: what is under way is waited for. */
  readonly signal: AbortSignal;
  /** Ends after so many events. */
  readonly max: number | undefined;
  /** Whether keys are read: r sends the last one again, q quits. */
  readonly readsKeys: boolean;
}

/** Takes the deliveries of the subscriptions and hands them to something here, until it is ended. */
export async function listen(
  evreg: Evreg,
  subscriptions: readonly Subscription[],
  { attempt, report, concurrency, leaseMs, signal, max = Infinity, readsKeys }: ListenOptions,
): Promise<void> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  let last: PulledDelivery | undefined;
  let begun = 0;
  let failure: unknown;
  const again = async (): Promise<void> => {
    if (last === undefined) return note("There is none to send again yet.");
    const delivery = last;
    await report.event({ delivery, result: await attempt(delivery) });
  };
  const stopKeys = readsKeys ? readKeys({ r: again, q: end }) : undefined;
  const connection = connectionNotes();

  const handle = async (delivery: ConsumedDelivery): Promise<void> => {
    last = delivery;
    const result = await attempt(delivery);
    const { status, errorCode, reason = "", durationMs: _ } = result;
    let finished: FinishedPull;
    if (result.isDelivered) {
      finished = await delivery.done({
        ...(status === undefined ? {} : { status }),
        ...(reason === "" ? {} : { reason }),
      });
    } else {
      const why = {
        ...(status === undefined ? {} : { status }),
        ...(errorCode === undefined ? {} : { errorCode }),
      };
      finished = await delivery.fail(reason, why);
    }
    connection.answered();
    await report.event({ delivery, result, finished });
  };

  const listenTo = async ({ rowid }: Subscription): Promise<void> => {
    const running = new Set<Promise<void>>();
    const options = { concurrency, leaseMs, consumer: listenerName(), signal: ending.signal };
    for await (const delivery of consume(evreg, rowid, { ...options, disconnected: connection.lost })) {
      begun += 1;
      if (begun >= max) end();
      const work = handle(delivery);
      running.add(work);
      void work.then(
        () => running.delete(work),
        (error: unknown) => {
          failure ??= error;
          end();
        },
      );
    }
    await Promise.allSettled(running);
  };
  try {
    await Promise.all(subscriptions.map((one) => listenTo(one).finally(end)));
  } finally {
    stopKeys?.();
    signal.removeEventListener("abort", end);
  }
  if (failure !== undefined) throw failure;
}

/** Says once that the server is gone, and once that it is back. */
function connectionNotes() {
  let isLost = false;
  return {
    lost: (error: EvregError): void => {
      if (!isLost) note(`${escapeControl(error.message)} Trying again; nothing is lost meanwhile.`);
      isLost = true;
    },
    answered: (): void => {
      if (isLost) note("The server answers again.");
      isLost = false;
    },
  };
}

/** @returns what stops it */
function readKeys(actions: Readonly<Record<string, () => unknown>>): () => void {
  const { stdin } = process;
  emitKeypressEvents(stdin);
  stdin.setRawMode(true);
  const onKey = (_text: string, key: { readonly name?: string; readonly ctrl?: boolean }): void => {
    // Raw mode takes Ctrl-C from the terminal.
    if (key.ctrl === true && key.name === "c") process.kill(process.pid, "SIGINT");
    else void actions[key.name ?? ""]?.();
  };
  stdin.on("keypress", onKey).resume();
  return () => {
    stdin.off("keypress", onKey).pause();
    stdin.setRawMode(false);
  };
}

/** Has the server send what was published since then and has no delivery yet. */
export async function replaySince(
  evreg: Evreg,
  subscriptions: readonly Subscription[],
  from: string,
): Promise<void> {
  for (const subscription of subscriptions) {
    try {
      await evreg.replays.start(subscription.rowid, { from, status: "missed" });
    } catch (error) {
      if (!(error instanceof EvregError) || error.code !== "conflict") throw error;
      note(`A replay for ${nameOf(subscription)} runs already, so --since starts no other.`);
    }
  }
}
