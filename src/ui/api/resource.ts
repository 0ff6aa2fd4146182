import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asApiError, askJson, changes, type ApiError, type Envelope } from "./request.ts";
import { loseSession } from "./session-token.ts";
import { identity } from "./identity.ts";
import { foundConnection, live, lostConnection } from "./live.ts";

export interface Resource<T, M> {
  /** The last good answer, also while a newer one is under way. */
  readonly answer: Envelope<T, M> | undefined;
  /** Why there is no newer one. */
  readonly error: ApiError | undefined;
  /** Asks again now. */
  readonly reload: () => void;
}

export type AnyMeta = Readonly<Record<string, unknown>>;

const RETRY_MS = 2_000;

/**
 * What the API answers at a path, kept while the component is shown, and asked for again after each change made here.
 * @param path with its query; `undefined` asks nothing. Another path begins anew
 * @param options.everyMs how soon after an answer it asks again, while live and seen; never two at a time
 * @param options.isFixed whether nothing changes it, such as the payload of an event
 * @param options.read instead of JSON: takes the answer itself
 */
export function useResource<T, M = AnyMeta>(
  path: string | undefined,
  options: {
    readonly everyMs?: number | undefined;
    readonly isFixed?: boolean;
    readonly read?: (path: string, signal: AbortSignal) => Promise<Envelope<T, M>>;
  } = {},
): Resource<T, M> {
  const [state, setState] = useState<{
    path: string | undefined;
    answer?: Envelope<T, M>;
    error?: ApiError;
  }>({ path });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const read = useRef(options.read);
  read.current = options.read;
  const { isFixed = false, everyMs } = options;
  const changed = changes.use();

  useEffect(() => {
    if (path === undefined) return undefined;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (waitMs: number): void => {
      timer = setTimeout(() => {
        if (document.hidden || live.value.state === "paused") again(waitMs);
        else void load();
      }, waitMs);
    };
    const load = async (): Promise<void> => {
      try {
        const answer = await (read.current ?? readJson<T, M>)(path, controller.signal);
        if (controller.signal.aborted) return;
        foundConnection();
        setState({ path, answer });
        if (everyMs !== undefined) again(everyMs);
      } catch (error) {
        if (controller.signal.aborted) return;
        const failure = noted(error);
        setState((before) => ({ ...(before.path === path ? before : { path }), error: failure }));
        if (failure.status === 0 || failure.status === 503) again(RETRY_MS);
        else if (everyMs !== undefined) again(Math.max(everyMs, RETRY_MS));
      }
    };
    void load();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [path, round, everyMs, isFixed ? 0 : changed]);

  // Whoever ends a pause wants to see what is new at once.
  const { state: liveState } = live.use();
  const stateBefore = useRef(liveState);
  useEffect(() => {
    if (stateBefore.current === "paused" && liveState === "live" && everyMs !== undefined) reload();
    stateBefore.current = liveState;
  }, [liveState]);

  const current = state.path === path ? state : { path };
  return { answer: current.answer, error: current.error, reload };
}

function readJson<T, M>(path: string, signal: AbortSignal): Promise<Envelope<T, M>> {
  return askJson<T, M>(path, { signal });
}

/** A failure as an `ApiError`, with what it means for all of the page: signed out, or not connected. */
export function noted(error: unknown): ApiError {
  const failure = asApiError(error);
  if (failure.status === 0) lostConnection();
  if (failure.status === 401) {
    loseSession();
    identity.value = null;
  }
  return failure;
}
