import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../domain/error.ts";
import type { PulledDelivery } from "../../domain/pull.ts";
import { bytesOf, memberOf } from "../../json/nodes.ts";
import { scanJson } from "../../json/scanner.ts";
import type { LocalAttempt } from "./forward.ts";

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
