import { createHash } from "node:crypto";
import { EvregError } from "../domain/error.ts";
import type { Backup } from "../domain/operations.ts";
import type { Evreg } from "../evreg.ts";
import { encodeJson } from "../json/raw-json.ts";
import { type PortOperation, OPERATIONS, type RequestPart } from "../api-operations.ts";
import { answerOf } from "./answers.ts";
import {
  type Channel,
  checkTarget,
  createChannel,
  foreignAnswer,
  type HttpMethod,
  type Opened,
} from "./channel.ts";
import { eventsOver } from "./events.ts";
import { streamOver } from "./stream.ts";

export interface ConnectOptions {
  /** `http:` or `https:`, with a path where evreg stands behind a prefix. */
  readonly url: string;
  /** Sent in the `Authorization` header and nowhere else. */
  readonly token?: string;
  /** The time for one request, from its start to the last byte of its answer; 30 s by default. */
  readonly timeoutMs?: number;
  /** Lets the token travel over plain `http:` to another machine, where anyone between can read it. */
  readonly allowInsecureToken?: boolean;
  /** Largest answer to read; 256 MiB unless told. */
  readonly maxAnswerBytes?: number;
}

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/**
 * All of evreg, done by the server at `url`. Nothing is sent before the first call. Besides what the port names, calls
 * fail with `unreachable`, whose message tells what to try.
 * `usage` for a URL or token that cannot be used.
 */
export function connect(options: ConnectOptions): Evreg {
  const { timeoutMs = TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = options;
  const channel = createChannel({ ...checkTarget(options), timeoutMs, maxAnswerBytes });
  const calls = callsOver(channel);
  return {
    ...calls,
    events: { ...calls.events, ...eventsOver(channel) },
    replays: {
      ...calls.replays,
      count(id, input) {
        const counting = { ...input, dry_run: true };
        return calls.replays.count(id, counting);
      },
    },
    async metrics() {
      const received = await channel.send("GET", "/metrics");
      const text = new TextDecoder().decode(received.bytes);
      if (!/^evreg_/m.test(text)) throw foreignAnswer(received);
      return text;
    },
    stream: (query, opening) => streamOver(channel, query, opening),
    backup: (signal) => backupOver(channel, signal),
    close: () => channel.close(),
  };
}

type Named<Name, Group extends string> = Name extends `${Group}.${infer Method}` ? Method : never;

/** The methods of the port that are in the table of operations. */
type Calls = {
  readonly [Group in keyof Evreg]: Group extends keyof typeof OPERATIONS
    ? Evreg[Group]
    : Pick<Evreg[Group], Named<keyof typeof OPERATIONS, Group> & keyof Evreg[Group]>;
};

function callsOver(channel: Channel): Calls {
  const calls: Record<string, object> = {};
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    const [group = "", method] = name.split(".");
    const call = callOver(channel, operation);
    calls[group] = method === undefined ? call : { ...calls[group], [method]: call };
  }
  // The table has the parts of each request in the order of its method's parameters.
  return calls as Calls;
}

/** One request, made of what it is called with. */
function callOver(channel: Channel, { target, takes, also }: PortOperation) {
  const [method, path] = target.split(" ") as [HttpMethod, string];
  return async (...given: readonly unknown[]): Promise<object> => {
    const parts: Partial<Record<RequestPart, unknown>> = Object.fromEntries(
      takes.map((part, at) => [part, given[at]]),
    );
    // One that was left out asks for nothing of its own.
    const { query, body = {}, signal } = parts;
    const received = await channel.send(
      method,
      path.replace(/:(name|id)/g, (_, part: RequestPart) => encodeURIComponent(String(parts[part]))),
      {
        query: { ...(query as object | undefined) },
        signal: signal as AbortSignal | undefined,
        ...(takes.includes("body") ? { body: encodeJson(body) } : {}),
        // The server waits so long for what a claim does not find yet.
        waitsMs: (body as { readonly wait_ms?: number } | null)?.wait_ms,
        also,
      },
    );
    return answerOf(received);
  };
}

const DIGEST = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;

/** A backup that the server makes, and that is read from it piece by piece; its content fails when it is not whole. */
async function backupOver(channel: Channel, signal?: AbortSignal): Promise<Backup> {
  const ending = new AbortController();
  const ended = AbortSignal.any([ending.signal, ...(signal === undefined ? [] : [signal])]);
  const opened = await channel.open("/v1/backup", ended);
  const { headers, body } = opened;
  const bytes = Number(headers["content-length"]);
  const digest = DIGEST.exec(String(headers["repr-digest"]))?.[1];
  if (digest === undefined || !Number.isSafeInteger(bytes)) {
    body.on("error", () => undefined).destroy();
    throw foreignAnswer({ ...opened, bytes: new Uint8Array() });
  }
  const sha256 = Buffer.from(digest, "base64").toString("hex");
  return {
    bytes,
    sha256,
    content: () => checked(opened, { bytes, sha256 }),
    close() {
      // What was not read is not wanted; its stream says so as an error.
      body.on("error", () => undefined);
      ending.abort();
      body.destroy();
      return Promise.resolve();
    },
  };
}

async function* checked(
  { body, target }: Opened,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let received = 0;
  try {
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      hash.update(piece);
      received += piece.length;
      yield piece;
    }
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw error;
    const why = `the connection broke after ${received} of ${bytes} bytes, as when the server is stopped`;
    throw torn(why, target, error);
  }
  if (received !== bytes) throw torn(`${received} of ${bytes} bytes came`, target);
  if (hash.digest("hex") !== sha256) throw torn("its digest is not the one that the server named", target);
}

function torn(why: string, target: string, cause?: unknown): EvregError {
  return new EvregError(
    "unreachable",
    `The backup did not arrive whole, so there is none: ${why}. Run it again once the server answers (${target}).`,
    {},
    { cause },
  );
}
