import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { ConsumerErrorCode, PulledDelivery } from "../../domain/pull.ts";
import { messageOf } from "../../domain/error.ts";
import { networkErrorCode } from "../../domain/network-error.ts";
import { usageError } from "../usage-errors.ts";
import { bytesOf, memberOf } from "../../json/nodes.ts";
import { scanJson } from "../../json/scanner.ts";

/** What came of one try on this machine. */
export interface LocalResult {
  readonly isDelivered: boolean;
  /** What a program answered. */
  readonly status?: number;
  readonly errorCode?: ConsumerErrorCode;
  /** The beginning of the answer, or why there is none. */
  readonly reason?: string;
  /** A signal cut it short: what it did is not known. */
  readonly isCut?: boolean;
}

/** Hands one delivery to something on this machine. Never rejects. @param signal cuts it short */
export type LocalAttempt = (delivery: PulledDelivery, signal: AbortSignal) => Promise<LocalResult>;

/** evreg waits for a handler so long at most. */
const TIMEOUT_MS = 60_000;
const MAX_STATUS = 599;
/** So many bytes of an answer are reported; the server keeps 1 KiB. */
const REASON_BYTES = 1_024;

/** Posts each delivery to the address: the very bytes and headers that a handler would be sent. */
export function forwardTo(url: URL): LocalAttempt {
  const agent = new Agent({
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    connect: { timeout: 10_000 },
  });
  return async ({ headers, body }, signal) => {
    try {
      const { statusCode: status, body: answer } = await request(url, {
        method: "POST",
        dispatcher: agent,
        headers: { ...headers },
        body: Buffer.from(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      const reason = await beginningOf(answer);
      // No status of HTTP (RFC 9110, 15), and none that the server takes.
      if (status > MAX_STATUS) {
        return { isDelivered: false, errorCode: "protocol_error", reason: `HTTP ${status}` };
      }
      const isDelivered = status >= 200 && status <= 299;
      return { isDelivered, status, ...(reason === "" ? {} : { reason }) };
    } catch (error) {
      const errorCode = networkErrorCode(error);
      return { isDelivered: false, errorCode, reason: messageOf(error), isCut: signal.aborted };
    }
  };
}

async function beginningOf(answer: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer) {
    pieces.push(piece);
    bytes += piece.length;
    // Leaving the loop ends the connection, so that an answer without end does no harm.
    if (bytes >= REASON_BYTES) break;
  }
  return Buffer.concat(pieces).subarray(0, REASON_BYTES).toString("utf8");
}

/**
 * An address as people type it: `3000` and `3000/hooks` are ports of this machine, `localhost:3000/hooks` and whole URLs are
 * what they say.
 * @throws EvregError `usage`
 */
export function localUrl(text: string): URL {
  const isPort = /^:?\d+(?:[/?]|$)/.test(text);
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const whole = isPort ? `http://localhost:${text.replace(/^:/, "")}` : hasScheme ? text : `http://${text}`;
  // A URL reads a number as an IPv4 address: events would go to a machine that nobody meant.
  const isNumber = /^https?:\/\/(?:\d+|0x[0-9a-f]*)(?:[/:?#]|$)/i.test(whole);
  const url = URL.canParse(whole) && !isNumber ? new URL(whole) : undefined;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url !== undefined && isHttp && url.username === "" && url.password === "" && url.port !== "0")
    return url;
  throw usageError(
    `--forward-to takes an address such as http://localhost:3000/hooks, localhost:3000 or 3000; not ${JSON.stringify(text)}.`,
  );
}

const HAS_GROUPS = process.platform !== "win32";

/** A command that is cut short has so long to end before it is killed. */
const KILL_AFTER_MS = 2_000;
const LOOK_EVERY_MS = 50;

/** Members of a delivery's body. */
const MEMBERS = 16;

/** The payload, byte for byte as it was published. */
export function payloadOf({ body }: Pick<PulledDelivery, "body">): Uint8Array {
  const bytes = Buffer.from(body);
  const payload = memberOf(bytes, scanJson(bytes, { envelopeLevels: 1, record: [MEMBERS] }), "payload");
  return payload === undefined ? bytes : bytesOf(bytes, payload);
}

/**
 * What a command is told beside its stdin. The headers have the names that CGI gives them, as `HTTP_WEBHOOK_ID`; the one with
 * the bearer value is left out, as others can see the variables of a process.
 */
function variablesOf({ action, event_id, delivery_id, attempt, headers }: PulledDelivery) {
  const variables: Record<string, string> = {
    EVENT_ACTION: action,
    EVENT_ID: String(event_id),
    EVENT_DELIVERY: String(delivery_id),
    EVENT_ATTEMPT: String(attempt),
  };
  for (const [name, value] of Object.entries(headers)) {
    if (name === "Authorization") continue;
    variables[`HTTP_${name.toUpperCase().replaceAll("-", "_")}`] = value;
  }
  return variables;
}

/** Runs a command of the shell for each delivery, with the payload on stdin. Exit code 0 is done; its output goes to stderr. */
export function execute(command: string): LocalAttempt {
  const running = new Set<ChildProcess>();
  // Nobody is left then to wait for them.
  process.once("exit", () => running.forEach((child) => signalGroup(child, "SIGKILL")));
  return async (delivery, signal) => {
    try {
      const child = spawn(command, {
        shell: true,
        env: { ...process.env, ...variablesOf(delivery) },
        stdio: ["pipe", 2, 2],
        // Ctrl-C is for the listener, which lets the command end; and a signal is to reach what its shell has started.
        detached: HAS_GROUPS,
      });
      running.add(child);
      const ended = once(child, "close", { signal }) as Promise<[code: number | null, signal: string | null]>;
      // A command need not read it.
      child.stdin!.on("error", () => undefined);
      child.stdin!.end(payloadOf(delivery));
      const [code, killedBy] = await ended
        .catch(async (error: unknown) => {
          if (signal.aborted) await stopGroup(child);
          throw error;
        })
        .finally(() => running.delete(child));
      if (code === 0) return { isDelivered: true };
      const reason = code === null ? `ended by ${killedBy}` : `exit code ${code}`;
      return failed(reason, code === null);
    } catch (error) {
      return failed(messageOf(error), signal.aborted);
    }
  };
}

/** Ends a command with what it has started. What takes no notice of the signal is killed. */
async function stopGroup(child: ChildProcess): Promise<void> {
  const untilMs = performance.now() + KILL_AFTER_MS;
  let isThere = signalGroup(child, "SIGTERM");
  while (isThere && performance.now() < untilMs) {
    await sleep(LOOK_EVERY_MS);
    isThere = signalGroup(child, 0);
  }
  if (isThere) signalGroup(child, "SIGKILL");
}

/** Answers whether there is still something to signal. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  try {
    return pid !== undefined && process.kill(HAS_GROUPS ? -pid : pid, signal);
  } catch {
    return false;
  }
}

function failed(reason: string, isCut: boolean) {
  return { isDelivered: false, errorCode: "consumer_failed", reason, isCut } as const;
}
