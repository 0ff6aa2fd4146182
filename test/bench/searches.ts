import { setTimeout as pause } from "node:timers/promises";
import { answerCalls } from "./calls.ts";
import { Latencies, type LatencySummary } from "./latencies.ts";

// One token that searches without end, and another that reads lists beside it.

/** Nothing conforms, so each search goes through all that it may. */
const SEARCH = `/v1/events?where=${encodeURIComponent('{"properties":{"total":{"minimum":1e9}},"required":["total"]}')}`;
const LISTS = ["/v1/actions", "/v1/events"];
/** Between two lists: a page that is open asks about as often. */
const LIST_EVERY_MS = 50;

interface SearchesRequest {
  readonly port: number;
  readonly searcher: string;
  readonly reader: string;
  /** Under way at any time. */
  readonly searches: number;
}

export interface SearchesResult {
  /** How many were answered with which status. */
  readonly searched: Readonly<Record<number, number>>;
  readonly listed: Readonly<Record<number, number>>;
  readonly lists: LatencySummary;
}

let closing = new AbortController();
let open: Promise<SearchesResult>;

async function statusOf(port: number, path: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
  await response.arrayBuffer();
  return response.status;
}

async function run({ port, searcher, reader, searches }: SearchesRequest): Promise<SearchesResult> {
  const { signal } = closing;
  const searched: Record<number, number> = {};
  const listed: Record<number, number> = {};
  const lists = new Latencies();
  const search = async (): Promise<void> => {
    while (!signal.aborted) {
      const status = await statusOf(port, SEARCH, searcher);
      searched[status] = (searched[status] ?? 0) + 1;
    }
  };
  const list = async (path: string): Promise<void> => {
    while (!signal.aborted) {
      const startedMs = performance.now();
      const status = await statusOf(port, path, reader);
      lists.add(performance.now() - startedMs);
      listed[status] = (listed[status] ?? 0) + 1;
      await pause(LIST_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  await Promise.all([...Array.from({ length: searches }, search), ...LISTS.map(list)]);
  return { searched, listed, lists: lists.summary() };
}

const calls = {
  open(request: SearchesRequest): void {
    closing = new AbortController();
    open = run(request);
    // It may fail before it is closed.
    open.catch(() => undefined);
  },
  close(): Promise<SearchesResult> {
    closing.abort();
    return open;
  },
};
export type SearchesCalls = typeof calls;

answerCalls(calls);
