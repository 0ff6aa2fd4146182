import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "./clock.ts";

const OPTION = "--max-semi-space-size";
const EXPOSE_GC = "--expose-gc";

/** The size of the heap for short-lived objects; the one option that Node must have when it starts. */
export const YOUNG_HEAP = `${OPTION}=8`;

/**
 * V8's own options, as the Node that evreg is built and measured with has them; another one might not know them and would
 * then not start at all. They let the heap grow by half of what is in use before it is collected, a server's from 64 MiB
 * on, and count what lies outside it, such as request bodies.
 */
const TUNED_NODE = 24;
const GROWTH = ["--heap-growing-percent=50", "--external-memory-accounted-in-global-limit"];
const TUNED = [...GROWTH, "--initial-old-space-size=64"];
const isTunedNode = Number.parseInt(process.versions.node, 10) === TUNED_NODE;

/**
 * What a server gives to Node. Left alone, V8 lets the heap for short-lived objects grow to 128 MiB under load and the
 * rest to as much, and to no gain: taking 25,000 events a second, or 500 batches, the process holds 400 MiB so, and 220
 * with these. `--expose-gc` lets it give memory back at rest (`rest.ts`).
 */
export const SERVER_HEAP: readonly string[] = [YOUNG_HEAP, EXPOSE_GC, ...(isTunedNode ? TUNED : [])];

/**
 * What reads HTTP is WebAssembly, and to optimise its one large function takes 23 MiB and 90 ms of a core: too much for the
 * few and short answers to a bulk.
 */
const PLAIN_PARSER = "--liftoff-only";

/** What publishing a file of any length gives to Node: the process holds 120 MiB so, and left alone 180. */
const BULK_HEAP: readonly string[] = [YOUNG_HEAP, ...(isTunedNode ? [...GROWTH, PLAIN_PARSER] : [])];

/** Whether the words of the command line ask for a file of any length to be published. */
export function isBulk([command, ...words]: readonly string[]): boolean {
  return command === "publish" && words.some((word) => word === "--batch" || word.startsWith("--batch="));
}

/**
 * Blocks of 32 KiB and more, such as the bodies of batches, are asked of the system one by one and go back to it when they
 * are free. Left alone, glibc keeps 50 MiB of them for good, and 25 with 64 KiB; other C libraries do not know the variable.
 */
export const SERVER_ENVIRONMENT = { MALLOC_MMAP_THRESHOLD_: "32768" } as const;

/**
 * Has the process replace itself by one with a bounded heap, as the size can only be given to Node when it starts. Its
 * number, standard streams and arguments stay. Costs some 30 ms; does nothing where the operator gave a size, and on
 * Windows, where a process cannot be replaced.
 */
export function limitServerHeap(): void {
  limitHeap(SERVER_HEAP);
}

/** The same for a command that `isBulk` tells. */
export function limitBulkHeap(): void {
  limitHeap(BULK_HEAP);
}

function limitHeap(heap: readonly string[]): void {
  const { execArgv, argv, env } = process;
  const isGiven = [...execArgv, env["NODE_OPTIONS"] ?? ""].some((text) => text.includes(OPTION));
  if (!isGiven) replaceProcess([...heap, ...execArgv, ...argv.slice(1)]);
}

/** By then a server has started. */
const STARTED_MS = 3_000;

/**
 * Either of them for the single executable, which has `YOUNG_HEAP` inside. The rest is given to V8 once a server has
 * started: with any of it Node compiles its own modules anew, which took each thread some 70 ms of a start.
 */
export function limitServerMemory(): void {
  const { argv, env } = process;
  if (Object.keys(SERVER_ENVIRONMENT).every((name) => env[name] === undefined)) replaceProcess(argv.slice(2));
  setTimeout(tune, STARTED_MS).unref();
}

function tune(): void {
  for (const flag of [EXPOSE_GC, ...TUNED]) setFlagsFromString(flag);
}

function replaceProcess(args: readonly string[]): void {
  const { execPath, env, platform } = process;
  if (platform === "win32" || process.execve === undefined) return;
  const variables = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
  process.execve(execPath, [execPath, ...args], { ...SERVER_ENVIRONMENT, ...variables });
}

export interface RestParts {
  readonly clock: Pick<Clock, "setTimer">;
  /** CPU time used so far, in milliseconds. */
  readonly cpuMs: () => number;
  /**
   * Called once after each stretch of work, when next to nothing was done for `QUIET_MS`, and every `LONGEST_MS` of work that
   * leaves time for it.
   */
  readonly tidy: () => void;
}

const QUIET_MS = 5_000;
/** Looking around and timers cost less; a few requests a second more. */
const BUSY_SHARE = 0.02;
/**
 * Work that goes on but is light makes so little garbage that V8 lets it lie for an hour: some 200 bytes for each delivery,
 * which come to 100 MB. With more work V8 collects by itself.
 */
const LONGEST_MS = 5 * 60_000;
const LIGHT_SHARE = 0.5;

/**
 * Tells when work has come to rest, by the CPU time it used: what is kept only to work fast, such as free heap, may then
 * be given back. Light work that never rests is tidied up after from time to time. Answers the way to end it.
 */
export function watchRest({ clock, cpuMs, tidy }: RestParts): () => void {
  let usedMs = cpuMs();
  let sinceMs = 0;
  // A start is a stretch of work as well.
  let hasWorked = true;
  let cancel: () => void;
  const look = (): void => {
    const nowMs = cpuMs();
    const isBusy = nowMs - usedMs > QUIET_MS * BUSY_SHARE;
    const isLight = nowMs - usedMs <= QUIET_MS * LIGHT_SHARE;
    hasWorked ||= isBusy;
    sinceMs += QUIET_MS;
    if (hasWorked && (!isBusy || (isLight && sinceMs >= LONGEST_MS))) {
      hasWorked = false;
      sinceMs = 0;
      tidy();
    }
    // What tidying took is no work.
    usedMs = cpuMs();
    cancel = clock.setTimer(look, QUIET_MS);
  };
  cancel = clock.setTimer(look, QUIET_MS);
  return () => cancel();
}

/** What this thread has used. */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/**
 * Gives the heap's free pages back to the system. Stops the thread for some 50 ms, so only for one at rest; does nothing
 * unless Node or, since then, V8 was given the option for it, as `server-heap.ts` has it.
 */
export function shrinkHeap(): void {
  // A thread from before V8 was given the option has no such function; a new context has.
  const collect = globalThis.gc ?? (runInNewContext("globalThis.gc") as typeof globalThis.gc);
  collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
}
