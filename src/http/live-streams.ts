import type { StreamedEvent, StreamMessage } from "../domain/stream.ts";
import { EvregError } from "../domain/error.ts";
import type { ChangeStream } from "../evreg.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ApiRequest } from "./request.ts";

/** Proxies and clients take a connection for dead on which nothing comes for some time. */
const COMMENT_EVERY_MS = 15_000;
/** A token may have been revoked since. */
const COMMENTS_PER_CHECK = 4;
const COMMENT = Buffer.from(":\n\n");

interface OpenStream {
  readonly request: ApiRequest;
  readonly stream: ChangeStream;
  /** The id that its client has. */
  sentId: string;
}

/**
 * The streams of a server as server-sent events (WHATWG HTML, 9.2). All share one timer, and what is the same for several is
 * encoded once. None of them holds up a stop.
 */
export class LiveStreams {
  readonly #clock: Clock;
  readonly #isAdmitted: (request: ApiRequest) => Promise<boolean>;
  readonly #stopping: AbortSignal;
  readonly #open = new Set<OpenStream>();
  readonly #encoded = new WeakMap<readonly StreamMessage[], Uint8Array>();
  #comments = 0;
  #cancelTimer: () => void = () => {};

  /** @param isAdmitted whether a request's token still holds */
  constructor(clock: Clock, stopping: AbortSignal, isAdmitted: (request: ApiRequest) => Promise<boolean>) {
    this.#clock = clock;
    this.#stopping = stopping;
    this.#isAdmitted = isAdmitted;
    stopping.addEventListener("abort", () => {
      for (const one of this.#open) end(one);
    });
  }

  /** What goes out on the stream's connection, until either ends. */
  async *chunks(request: ApiRequest, stream: ChangeStream): AsyncGenerator<Uint8Array, void, void> {
    const one: OpenStream = { request, stream, sentId: "" };
    request.onFinished(() => void stream.close());
    if (this.#stopping.aborted) throw new EvregError("unavailable", "The server is being stopped.");
    if (this.#open.size === 0) this.#startTimer();
    this.#open.add(one);
    try {
      yield COMMENT;
      for await (const batch of stream.batches()) {
        one.sentId = batch.at(-1)!.id;
        yield this.#encode(batch);
      }
    } finally {
      this.#open.delete(one);
      if (this.#open.size === 0) this.#cancelTimer();
    }
  }

  #encode(batch: readonly StreamMessage[]): Uint8Array {
    let bytes = this.#encoded.get(batch);
    if (bytes === undefined) this.#encoded.set(batch, (bytes = encodeMessages(batch)));
    return bytes;
  }

  #startTimer(): void {
    this.#cancelTimer = this.#clock.setTimer(() => {
      this.#startTimer();
      this.#comments += 1;
      for (const one of this.#open) comment(one);
      if (this.#comments % COMMENTS_PER_CHECK === 0) this.checkAll();
    }, COMMENT_EVERY_MS);
  }

  /** Ends those whose token holds no longer. */
  checkAll(): void {
    for (const one of this.#open) void this.#check(one);
  }

  async #check(one: OpenStream): Promise<void> {
    if (!(await this.#isAdmitted(one.request))) end(one);
  }
}

function comment(one: OpenStream): void {
  const { request, stream } = one;
  const { nodeResponse } = request;
  // Something is on its way already. A reader that takes nothing must not seem alive.
  if (nodeResponse.writableLength > 0) return;
  const { id } = stream;
  if (id === one.sentId) nodeResponse.write(COMMENT);
  else nodeResponse.write(`:\nid: ${id}\n\n`);
  one.sentId = id;
}

function end({ request, stream }: OpenStream): void {
  void stream.close();
  // A reader that takes nothing would not take the end either.
  if (request.nodeResponse.writableLength > 0) request.disconnect();
}

export function encodeMessages(messages: readonly StreamMessage[]): Uint8Array {
  let text = "";
  for (const { type, id, data } of messages) {
    const json = type === "event" ? eventJson(data) : JSON.stringify(data);
    text += `id: ${id}\nevent: ${type}\ndata: ${dataLines(json)}\n\n`;
  }
  return Buffer.from(text);
}

const LINE_BREAK = /\r\n?|\n/g;

/** Only between the tokens of a payload are there line breaks. */
function dataLines(json: string): string {
  return json.includes("\n") || json.includes("\r") ? json.replace(LINE_BREAK, "\ndata: ") : json;
}

/** A stream ends lines at LF, CR and CRLF and has one form for all of them, so a payload with CR comes as base64 as well. */
function eventJson(event: StreamedEvent): string {
  if (event.payload === undefined) return JSON.stringify(event);
  const { payload, ...others } = event;
  const { bytes } = payload;
  const base64 = bytes.includes(CR) ? `,"payload_base64":"${Buffer.from(bytes).toString("base64")}"` : "";
  return `${JSON.stringify(others).slice(0, -1)},"payload":${payload.text()}${base64}}`;
}

const CR = 0x0d;
