import { emitKeypressEvents } from "node:readline";
import { consume, type ConsumedDelivery } from "../../client/consume.ts";
import { EvregError } from "../../domain/error.ts";
import type { FinishedPull, PulledDelivery } from "../../domain/pull.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { note } from "../io/output.ts";
import { escapeControl } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import type { LocalAttempt, LocalProgram, LocalResult } from "./forward.ts";
import type { ListenReport } from "./report.ts";
import { listenerName, nameOf, typedName } from "./subscriptions.ts";

export interface ListenOptions {
  readonly attempt: LocalAttempt;
  /** Waited for while it refuses connections, so that no attempt is used up; `undefined` where there is none. */
  readonly program: LocalProgram | undefined;
  readonly report: Pick<ListenReport, "event">;
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
  { attempt, program, report, concurrency, leaseMs, signal, max = Infinity, readsKeys }: ListenOptions,
): Promise<void> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  /** Aborted when no more is to be taken for now. */
  let taking = new AbortController();
  let last: PulledDelivery | undefined;
  let begun = 0;
  let isRefused = false;
  let failure: unknown;
  const again = async (): Promise<void> => {
    if (last === undefined) return note("There is none to send again yet.");
    const delivery = last;
    const result = await attempt(delivery);
    if (isDown(result)) return note(`Not sent again: nothing answers at ${program!.name}.`);
    await report.event({ delivery, result });
  };
  const isDown = ({ errorCode }: LocalResult): boolean =>
    program !== undefined && errorCode === "connection_refused";
  const stopKeys = readsKeys ? readKeys({ r: again, q: end }) : undefined;
  const connection = connectionNotes();
  const givenUp = givenUpNotes(subscriptions);

  const handle = async (delivery: ConsumedDelivery, subscription: Subscription): Promise<void> => {
    const result = await attempt(delivery);
    if (isDown(result)) {
      // As if it had never been taken. It is signed anew when it is taken again.
      begun -= 1;
      isRefused = true;
      taking.abort();
      await delivery.release();
      return;
    }
    last = delivery;
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
    if (finished.status === "failed") givenUp.one(subscription);
  };

  const take = async (subscription: Subscription): Promise<void> => {
    const running = new Set<Promise<void>>();
    const options = {
      concurrency,
      leaseMs,
      consumer: listenerName(),
      signal: AbortSignal.any([ending.signal, taking.signal]),
      disconnected: connection.lost,
    };
    for await (const delivery of consume(evreg, subscription.rowid, options)) {
      begun += 1;
      if (begun >= max) taking.abort();
      const work = handle(delivery, subscription);
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
    for (;;) {
      taking = new AbortController();
      const { signal: taken } = taking;
      await Promise.all(subscriptions.map((one) => take(one).finally(() => taken.aborted || taking.abort())));
      if (ending.signal.aborted || begun >= max) break;
      if (!isRefused || program === undefined) continue;
      isRefused = false;
      note(`${program.name} refuses connections; waiting for it. Nothing is lost.`);
      await program.isBack(ending.signal);
      if (!ending.signal.aborted) note(`${program.name} answers again.`);
    }
  } finally {
    stopKeys?.();
    signal.removeEventListener("abort", end);
    givenUp.all();
  }
  if (failure !== undefined) throw failure;
}

/** Says of what is not tried again what to type: at the first, and at the end of how many. */
function givenUpNotes(subscriptions: readonly Subscription[]) {
  const counts = new Map<Subscription, number>();
  const retry = (subscription: Subscription): string =>
    nextCommand(`deliveries retry --status failed --subscription ${typedName(subscription, subscriptions)}`);
  return {
    one(subscription: Subscription): void {
      const count = (counts.get(subscription) ?? 0) + 1;
      counts.set(subscription, count);
      if (count === 1) note(`What is given up is sent again with: ${retry(subscription)}`);
    },
    all(): void {
      for (const [subscription, count] of counts) {
        if (count > 1) note(`Given up: ${count.toLocaleString("en")} events. ${retry(subscription)}`);
      }
    },
  };
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
