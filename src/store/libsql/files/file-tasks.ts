import { EvregError } from "../../../domain/error.ts";
import type { EncryptionKeys } from "../../secret-cipher.ts";
import {
  type FileCheck,
  type FileSettling,
  fromWireError,
  type NumberMove,
  type Sequences,
  type WireOutcome,
} from "../thread/protocol.ts";
import { storeThread } from "../thread/worker-client.ts";
import type { Examined } from "./closed-file.ts";

export type { FileFacts } from "./closed-file.ts";

/**
 * Looks through a data file, or a copy of one, that this process has not open. See `closed-file.ts` for what it takes
 * and what is refused.
 * @param options `name`: what messages call it, if not by its path; `encryption`: what its secrets must open with; nothing
 * is asked of them when left out; `tokenHash`: of a token that is looked for in it
 */
export async function checkFile(
  path: string,
  options: {
    readonly name?: string;
    readonly encryption?: { readonly keys: EncryptionKeys | undefined };
    readonly tokenHash?: string | undefined;
  } = {},
): Promise<Examined> {
  const { name = path, encryption, tokenHash } = options;
  const check = { check: path, name, opensSecrets: encryption !== undefined, encryption: encryption?.keys };
  return (await inThread(tokenHash === undefined ? check : { ...check, tokenHash })) as Examined;
}

/**
 * Moves a data file's log into it, and answers what its numbers have come to.
 * @throws EvregError `conflict` when another process has it, `unavailable` when that cannot be done
 */
export async function settleFile(path: string): Promise<Sequences> {
  return (await inThread({ settle: path })) as Sequences;
}

/** See `id-reservation.ts`; of a file that this process has not open. */
export async function moveNumbers(move: NumberMove): Promise<Sequences> {
  return (await inThread(move)) as Sequences;
}

/** Resolves once the thread has ended: only then are the file, and what the engine put beside it, let go of. */
function inThread(task: FileCheck | FileSettling | NumberMove): Promise<unknown> {
  const thread = storeThread(task);
  return new Promise((resolve, reject) => {
    let outcome: WireOutcome | undefined;
    thread.on("message", (message: WireOutcome) => (outcome = message));
    thread.on("error", (error) => reject(failed(task, error)));
    thread.on("exit", () => {
      if (outcome === undefined) reject(new Error("a thread of the store ended without an answer"));
      else if ("error" in outcome) reject(fromWireError(outcome.error));
      else resolve(outcome.ok);
    });
  });
}

/** That says nothing of the file: the engine may not be there to be loaded. */
function failed(task: FileCheck | FileSettling | NumberMove, cause: unknown): EvregError {
  const file = fileOf(task);
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EvregError(
    "unavailable",
    `${file} could not be looked at: the store's thread failed: ${reason}.`,
    {},
    { cause },
  );
}

function fileOf(task: FileCheck | FileSettling | NumberMove): string {
  if ("check" in task) return task.name;
  return "settle" in task ? task.settle : task.moveOn;
}
