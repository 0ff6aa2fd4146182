import { EvregError } from "../domain/error.ts";
import { type StreamMessage, streamOfBatches, type StreamQuery } from "../domain/stream.ts";
import type { ChangeStream, StreamOptions } from "../evreg.ts";
import { jsonOf, streamedEvent } from "./answers.ts";
import { Backoff, isPassing } from "./backoff.ts";
import { type Channel, foreignAnswer, type Opened } from "./channel.ts";

const PATH = "/v1/stream";
/** A server sends something every 15 seconds. */
const SILENCE_MS = 45_000;
const MAX_WAIT_MS = 15_000;

/** A stream that the server sends; it is opened once before this answers, and again whenever it breaks. */
export async function streamOver(
  channel: Channel,
  { topics, ...filters }: StreamQuery = {},
  { signal, disconnected }: StreamOptions = {},
): Promise<ChangeStream> {
  const ending = new AbortController();
  const ended = AbortSignal.any([ending.signal, ...(signal === undefined ? [] : [signal])]);
  const query = { ...filters, topics: topics?.join(",") };
  let id = "";
  const open = async (): Promise<Opened> => {
    const headers = { accept: "text/event-stream", ...(id === "" ? {} : { "last-event-id": id }) };
    const opened = await channel.open(PATH, ended, { query, headers, silenceMs: SILENCE_MS });
    if (/^text\/event-stream\b/.test(String(opened.headers["content-type"]))) return opened;
    opened.body.on("error", () => undefined).destroy();
    throw foreignAnswer({ ...opened, bytes: new Uint8Array() });
  };
  const close = (): Promise<void> => {
    ending.abort();
    return Promise.resolve();
  };
  let opened: Opened | undefined;
  // It is closed even where it is never read.
  ended.addEventListener("abort", () => opened?.body.on("error", () => undefined).destroy());
  if (!ended.aborted) opened = await open();

  async function* batches(): AsyncGenerator<readonly StreamMessage[], void, void> {
    let backoff = new Backoff(MAX_WAIT_MS);
    try {
      while (!ended.aborted) {
        let failure: EvregError;
        try {
          opened ??= await open();
          for await (const batch of rawMessages(opened.body as AsyncIterable<Uint8Array>)) {
            const from = opened;
            // Without data it only moves the id on.
            const shown = batch.filter(({ data }) => data !== "").map((raw) => messageOf(raw, from));
            backoff = new Backoff(MAX_WAIT_MS);
            ({ id } = batch.at(-1)!);
            if (shown.length > 0) yield shown;
          }
          failure = broken("The server ended the stream.", opened.target);
        } catch (error) {
          if (ended.aborted) return;
          failure = error instanceof EvregError ? error : broken("The stream broke.", PATH, error);
          if (!isPassing(failure)) throw failure;
        }
        opened = undefined;
        if (ended.aborted) return;
        disconnected?.(failure);
        await backoff.pause(failure, ended);
      }
    } finally {
      await close();
    }
  }

  return streamOfBatches(() => id, batches, close);
}

function broken(message: string, target: string, cause?: unknown): EvregError {
  return new EvregError("unreachable", message, { target }, { cause });
}

/** Types of a later version are passed on as they are. */
function messageOf({ type, id, data }: RawMessage, opened: Opened): StreamMessage {
  const received = { ...opened, bytes: Buffer.from(data) };
  if (type === "event") return { type, id, data: streamedEvent(received) };
  return { type, id, data: jsonOf(received) } as StreamMessage;
}

interface RawMessage {
  /** `message` where it has no name. */
  readonly type: string;
  /** Its lines, joined by LF; empty where only an id came. */
  readonly data: string;
  /** The last id so far. */
  readonly id: string;
}

/** A message beyond this is not evreg's: a payload has 16 MiB at most, and with carriage returns comes twice. */
const MAX_MESSAGE_LENGTH = 64 * 1024 * 1024;

/**
 * The messages of an event stream (WHATWG HTML, 9.2.6), those together that end in one piece. Other than there, lines end by LF alone, as evreg
 * writes them, and an id without data is a message too: so the id moves on while nothing else comes. Of one that is cut off nothing is
 * answered.
 */
export async function* rawMessages(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly RawMessage[], void, void> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let id = "";
  let lines: string[] = [];
  let lineParts: string[] = [];
  let length = 0;
  for await (const piece of pieces) {
    const messages: RawMessage[] = [];
    const [lineEnd, ...nextLines] = decoder.decode(piece, { stream: true }).split("\n");
    lineParts.push(lineEnd!);
    length += piece.length;
    if (length > MAX_MESSAGE_LENGTH) throw new RangeError("a message of the stream is too large");
    for (const next of nextLines) {
      const line = lineParts.join("");
      lineParts = [next];
      if (line !== "") lines.push(line);
      else {
        const message = messageIn(lines, id);
        if (message !== undefined) messages.push(message);
        id = message?.id ?? id;
        lines = [];
        length = 0;
      }
    }
    if (messages.length > 0) yield messages;
  }
}

function messageIn(lines: readonly string[], lastId: string): RawMessage | undefined {
  let type = "";
  let id: string | undefined;
  const data: string[] = [];
  for (const line of lines) {
    const [name = ""] = line.split(":", 1);
    const value = line.slice(name.length + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else if (name === "event") type = value;
    else if (name === "id" && !value.includes("\0")) id = value;
  }
  if (data.length === 0 && id === undefined) return undefined;
  return { type: type || "message", id: id ?? lastId, data: data.join("\n") };
}
