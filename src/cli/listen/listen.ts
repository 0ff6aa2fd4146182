import { emitKeypressEvents } from "node:readline";
import { consume, type ConsumedDelivery } from "../../client/consume.ts";
import { EvregError } from "../../domain/error.ts";
import type { FinishedPull, PulledDelivery } from "../../domain/pull.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Evreg } from "../../evreg.ts";
import { note } from "../io/output.ts";
import { subscriptionOf } from "../views/deliveries.ts";
import { shellWord } from "../../domain/formats.ts";
import { escapeControl } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import type { LocalAttempt, LocalProgram, LocalResult } from "./forward.ts";
import type { ListenReport } from "./report.ts";
import { listenerName, nameOf, typedName } from "./subscriptions.ts";

export interface ListenOptions {
  readonly attempt: LocalAttempt;
  /** Waited for while it refuses connections, so that no attempt is used up; `undefined` where there is none. */
  readonly program: LocalProgram | undefined;
  readonly report: ListenReport;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** The subscription whose secret signs, in place of its own. */
  readonly signAs: number | undefined;
  /** Ends it: what is under way is waited for, but no longer than the grace, and then goes back. */
  readonly signal: AbortSignal;
  readonly graceMs: number;
  /** Ends after so many events. */
  readonly max: number | undefined;
  /** Whether keys are read: r sends the last one again, q quits. */
  readonly readsKeys: boolean;
}

const UNAUTHORIZED = 401;

/** Takes the deliveries of the subscriptions and hands them to something here, until it is ended. */
export async function listen(
  evreg: Evreg,
  subscriptions: readonly Subscription[],
  {
    attempt,
    program,
    report,
    concurrency,
    leaseMs,
    signAs,
    signal,
    graceMs,
    max = Infinity,
    readsKeys,
  }: ListenOptions,
): Promise<void> {
  const ending = new AbortController();
  /** Aborted when what is still under way goes back. */
  const grace = new AbortController();
  let graceTimer: NodeJS.Timeout | undefined;
  const end = (): void => {
    graceTimer ??= setTimeout(() => grace.abort(), graceMs);
    ending.abort();
  };
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
    const result = await attempt(delivery, grace.signal);
    if (isDown(result)) return note(`Not sent again: nothing answers at ${program!.name}.`);
    await report({ delivery, result });
  };
  const isDown = ({ errorCode }: LocalResult): boolean =>
    program !== undefined && errorCode === "connection_refused";
  const stopKeys = readsKeys ? readKeys({ r: again, q: end }) : undefined;
  const connection = connectionNotes();
  const givenUp = givenUpNotes(subscriptions);
  const otherSecret = otherSecretNote(evreg);

  const handle = async (delivery: ConsumedDelivery, subscription: Subscription): Promise<void> => {
    const result = await attempt(delivery, grace.signal);
    if (ending.signal.aborted && result.isCut === true) {
      await delivery.release();
      return;
    }
    if (isDown(result)) {
      // It counts as never taken. It is signed anew when it is taken again.
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
    if (status === UNAUTHORIZED && signAs === undefined)
      await otherSecret.note(delivery.action, subscription);
    await report({ delivery, result, finished });
    if (finished.status === "failed") givenUp.one(subscription);
  };

  const take = async (subscription: Subscription): Promise<void> => {
    const running = new Set<Promise<void>>();
    const options = {
      concurrency,
      leaseMs,
      consumer: listenerName(),
      ...(signAs === undefined ? {} : { signAs }),
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
          // The consumer waits for each delivery that it handed out, so none stays without a result.
          void delivery.release();
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
    clearTimeout(graceTimer);
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

/** Says once why a program that verifies signatures answers 401. */
function otherSecretNote(evreg: Evreg) {
  let isNoted = false;
  return {
    async note(action: string, listened: Subscription): Promise<void> {
      if (isNoted) return;
      isNoted = true;
      // A token may be allowed to listen and not to read.
      const subscribed = await evreg.subscriptions.list({ action }).catch(() => undefined);
      const handled = subscribed?.data.find(({ mode }) => mode === "push");
      const name = handled === undefined ? "APPLICATION/SUBSCRIPTION" : subscriptionOf(handled);
      note(
        `The program answers 401. If it verifies signatures: these are made with the secret of ${nameOf(listened)}. To sign with the secret that it knows, add --secret-of ${shellWord(escapeControl(name))}, which takes the scope write for that application.`,
      );
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
