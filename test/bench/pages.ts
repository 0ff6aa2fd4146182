import { setTimeout as pause } from "node:timers/promises";
import { answerCalls } from "./calls.ts";

// What open pages at `/ui/` ask for, without a browser, which would take the processor's time from the server.

interface Read {
  readonly path: string;
  /** From an answer to the next question. */
  readonly everyMs: number;
}

const ALL_SCREENS: readonly Read[] = [
  { path: "/health", everyMs: 5_000 },
  { path: "/v1/attention", everyMs: 5_000 },
];
const OVERVIEW: readonly Read[] = [
  ...ALL_SCREENS,
  { path: "/v1/stats?range=1h&by=subscription&limit=1000", everyMs: 5_000 },
  { path: "/v1/subscriptions", everyMs: 10_000 },
];
const EVENTS: readonly Read[] = [
  ...ALL_SCREENS,
  { path: "/v1/events?limit=50&payloads=false&deliveries=true", everyMs: 1_000 },
];
const subscription = (id: number): readonly Read[] => [
  ...ALL_SCREENS,
  { path: `/v1/subscriptions/${id}`, everyMs: 2_000 },
  { path: `/v1/subscriptions/${id}/attempts?limit=50`, everyMs: 2_000 },
  { path: `/v1/deliveries?subscription=${id}&limit=12`, everyMs: 2_000 },
];

let closing = new AbortController();
let open: Promise<unknown> = Promise.resolve();

const calls = {
  /** Opens three pages: the overview, the events and a subscription. */
  open({ port, token, id }: { port: number; token: string; id: number }): void {
    closing = new AbortController();
    const { signal } = closing;
    const repeat = async ({ path, everyMs }: Read): Promise<number> => {
      let answers = 0;
      while (!signal.aborted) {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, {
          headers: { authorization: `Bearer ${token}` },
        });
        await response.arrayBuffer();
        if (!response.ok) throw new Error(`${path} was answered ${response.status}.`);
        answers += 1;
        await pause(everyMs, undefined, { signal }).catch(() => undefined);
      }
      return answers;
    };
    open = Promise.all([...OVERVIEW, ...EVENTS, ...subscription(id)].map(repeat));
    // It may fail before the pages are closed.
    open.catch(() => undefined);
  },
  /** Closes them. Fails if anything that they asked for was refused. */
  async close(): Promise<void> {
    closing.abort();
    await open;
  },
};
export type PagesCalls = typeof calls;

answerCalls(calls);
