import { spawn } from "node:child_process";
import { once } from "node:events";
import { messageOf } from "../../domain/error.ts";
import type { PulledDelivery } from "../../domain/pull.ts";
import { bytesOf, memberOf } from "../../json/nodes.ts";
import { scanJson } from "../../json/scanner.ts";
import type { LocalAttempt } from "./forward.ts";

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
  return async (delivery) => {
    const startedMs = performance.now();
    const durationMs = (): number => Math.round(performance.now() - startedMs);
    try {
      const child = spawn(command, {
        shell: true,
        env: { ...process.env, ...variablesOf(delivery) },
        stdio: ["pipe", 2, 2],
      });
      const ended = once(child, "close") as Promise<[code: number | null, signal: string | null]>;
      // A command need not read it.
      child.stdin!.on("error", () => undefined);
      child.stdin!.end(payloadOf(delivery));
      const [code, signal] = await ended;
      if (code === 0) return { isDelivered: true, durationMs: durationMs() };
      const reason = code === null ? `ended by ${signal}` : `exit code ${code}`;
      return { isDelivered: false, errorCode: "consumer_failed", reason, durationMs: durationMs() };
    } catch (error) {
      const reason = messageOf(error);
      return { isDelivered: false, errorCode: "consumer_failed", reason, durationMs: durationMs() };
    }
  };
}
