import { EvregError } from "../domain/error.ts";
import { type StreamMessage, streamOfBatches, type StreamQuery } from "../domain/stream.ts";
import type { ChangeStream, StreamOptions } from "../evreg.ts";
import { jsonOf, streamedEvent } from "./answers.ts";
import { Backoff, isPassing } from "./backoff.ts";
import { type Channel, foreignAnswer, type Opened } from "./channel.ts";
import { EventStreamParser, type RawMessage } from "./event-stream-parser.ts";

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
          for await (const batch of messagesOf(opened)) {
            backoff = new Backoff(MAX_WAIT_MS);
            ({ id } = batch.at(-1)!);
            const shown = batch.filter(isShown);
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

/** A message that only moves the id on. */
type PositionMessage = { readonly type: "moved"; readonly id: string };

function isShown(message: StreamMessage | PositionMessage): message is StreamMessage {
  return message.type !== "moved";
}

async function* messagesOf(
  opened: Opened,
): AsyncGenerator<readonly (StreamMessage | PositionMessage)[], void, void> {
  const parser = new EventStreamParser();
  for await (const piece of opened.body as AsyncIterable<Uint8Array>) {
    const messages = parser.push(piece).map((message) => messageOf(message, opened));
    if (messages.length > 0) yield messages;
  }
}

/** Types of a later version are passed on as they are. */
function messageOf({ type, id, data }: RawMessage, opened: Opened): StreamMessage | PositionMessage {
  if (data.length === 0) return { type: "moved", id };
  const received = { ...opened, bytes: data };
  if (type === "event") return { type, id, data: streamedEvent(received) };
  return { type, id, data: jsonOf(received) } as StreamMessage;
}
