/** The part of `process` that is needed here. */
export interface SignalSource {
  on(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
  off(signal: StopSignal, listener: (signal: StopSignal) => void): unknown;
}

/**
 * SIGHUP is one for a server at a terminal: that was closed, and without a word from us it ends the server in the middle
 * of things. For any other it is the wish to take up its configuration again.
 */
export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** 128 + the signal's number, as shells count. */
const SIGNAL_EXIT_CODE: Readonly<Record<StopSignal, number>> = {
  SIGHUP: 129,
  SIGINT: 130,
  SIGTERM: 143,
};

/** Within this time a second signal is taken for the same wish: terminals and `npm` send one twice. */
const SAME_WISH_MS = 100;

export interface StopSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<StopSignal>;
  /** Stops listening; signals do what they did before. */
  release(): void;
}

/**
 * Listens for the wish to stop. The first signal resolves `first`, for a stop in order; a second one ends the process
 * at once, which loses nothing that was answered.
 * @param endNow ends the process with an exit code, `process.exit` or a test's
 */
export function listenForStop(
  endNow: (exitCode: number) => void,
  source: SignalSource = process,
  now: () => number = Date.now,
  signals: readonly StopSignal[] = Object.keys(SIGNAL_EXIT_CODE) as StopSignal[],
): StopSignals {
  const { promise, resolve } = Promise.withResolvers<StopSignal>();
  let firstAtMs: number | undefined;
  const listener = (signal: StopSignal): void => {
    if (firstAtMs === undefined) {
      firstAtMs = now();
      resolve(signal);
    } else if (now() - firstAtMs >= SAME_WISH_MS) {
      endNow(SIGNAL_EXIT_CODE[signal]);
    }
  };
  for (const signal of signals) source.on(signal, listener);
  return {
    first: promise,
    release() {
      for (const signal of signals) source.off(signal, listener);
    },
  };
}
