import type { StreamedEvent, StreamMessage } from "../domain/stream.ts";
import { EvregError } from "../domain/error.ts";
import type { ChangeStream } from "../evreg.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Service } from "../service/service.ts";
import { streamTurns } from "../service/stream-pages.ts";
import type { ApiRequest } from "./request.ts";

/** Proxies and clients take a connection for dead on which nothing comes for some time. */
const COMMENT_EVERY_MS = 15_000;
/** A token may have been revoked since. To look at those of 500 streams holds up others for some 20 ms. */
const COMMENTS_PER_CHECK = 4;
const COMMENT = Buffer.from(":\n\n");

interface OpenStream {
  readonly request: ApiRequest;
  readonly stream: ChangeStream;
  /** The id that its client has. */
  sentId: string;
  /** Whether a message has begun on its connection and not ended. */
  isWithinMessage: boolean;
}

/**
 * The streams of a server as server-sent events (WHATWG HTML, 9.2). All share one timer, and what is the same for several is
 * encoded once. None of them holds up a stop.
 */
export class LiveStreams {
  readonly #clock: Clock;
  readonly #tokens: Pick<Service["tokens"], "holds">;
  readonly #stopping: AbortSignal;
  readonly #open = new Set<OpenStream>();
  /** The bytes of batches that are encoded in one go. */
  readonly #encoded = new WeakMap<readonly StreamMessage[], Uint8Array>();
  #comments = 0;
  #cancelTimer: () => void = () => {};

  constructor(clock: Clock, stopping: AbortSignal, tokens: Pick<Service["tokens"], "holds">) {
    this.#clock = clock;
    this.#stopping = stopping;
    this.#tokens = tokens;
    stopping.addEventListener("abort", () => {
      for (const one of this.#open) end(one);
    });
  }

  /** What goes out on the stream's connection, until either ends. */
  async *chunks(request: ApiRequest, stream: ChangeStream): AsyncGenerator<Uint8Array, void, void> {
    const one: OpenStream = { request, stream, sentId: "", isWithinMessage: false };
    request.onFinished(() => void stream.close());
    if (this.#stopping.aborted) throw new EvregError("unavailable", "The server is being stopped.");
    if (this.#open.size === 0) this.#startTimer();
    this.#open.add(one);
    try {
      yield COMMENT;
      for await (const batch of stream.batches()) {
        one.sentId = batch.at(-1)!.id;
        if (isLarge(batch)) yield* inTurns(one, encodeMessages(batch));
        else yield this.#encode(batch);
      }
    } finally {
      this.#open.delete(one);
      if (this.#open.size === 0) this.#cancelTimer();
    }
  }

  #encode(batch: readonly StreamMessage[]): Uint8Array {
    let bytes = this.#encoded.get(batch);
    if (bytes === undefined) this.#encoded.set(batch, (bytes = Buffer.concat([...encodeMessages(batch)])));
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
    // While the store cannot be read, nobody is cut off.
    const holds = await this.#tokens.holds(one.request.principal!).catch(() => true);
    if (!holds) end(one);
  }
}

function comment(one: OpenStream): void {
  const { request, stream } = one;
  const { nodeResponse } = request;
  // Something is on its way already. A reader that takes nothing must not seem alive.
  if (one.isWithinMessage || nodeResponse.writableLength > 0) return;
  const { id } = stream;
  if (id === one.sentId) nodeResponse.write(COMMENT);
  else nodeResponse.write(`:\nid: ${id}\n\n`);
  one.sentId = id;
}

function end({ request, stream, isWithinMessage }: OpenStream): void {
  void stream.close();
  // A reader that takes nothing would not take the end either.
  if (isWithinMessage || request.nodeResponse.writableLength > 0) request.disconnect();
}

/** One event that is larger than a page: all others of a batch are few bytes together. */
function isLarge(batch: readonly StreamMessage[]): boolean {
  return batch.some(({ type, data }) => type === "event" && (data.payload?.bytes.length ?? 0) > PIECE_BYTES);
}

/** Pieces of a message, each in a turn of its reader. */
async function* inTurns(
  one: OpenStream,
  pieces: Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, void> {
  one.isWithinMessage = true;
  for (const piece of pieces) {
    yield piece;
    await streamTurns.yield();
  }
  one.isWithinMessage = false;
}

/** About what is encoded at once. */
const PIECE_BYTES = 64 * 1024;
/** What base64 makes a piece of, without a rest. */
const BASE64_BYTES = 48 * 1024;
/** A longer payload is written by its bytes, and a shorter one as text, which is cheaper for many. */
const LONG_BYTES = 4 * 1024;

/** Messages on the wire, piece by piece: a payload of line breaks becomes seven times as large. */
export function* encodeMessages(messages: readonly StreamMessage[]): Generator<Uint8Array, void, void> {
  let text = "";
  for (const { type, id, data } of messages) {
    text += `id: ${id}\nevent: ${type}\ndata: `;
    const bytes = type === "event" ? data.payload?.bytes : undefined;
    if (bytes === undefined) text += JSON.stringify(data);
    else {
      const { payload, ...others } = data as StreamedEvent;
      text += `${JSON.stringify(others).slice(0, -1)},"payload":`;
      if (bytes.length <= LONG_BYTES) text += dataLines(payload!.text());
      else {
        yield Buffer.from(text);
        yield* dataPieces(bytes);
        text = "";
      }
      // A stream ends lines at LF, CR and CRLF and has one form for all of them.
      if (bytes.includes(CR)) {
        yield Buffer.from(`${text},"payload_base64":"`);
        yield* base64Pieces(bytes);
        text = '"';
      }
      text += "}";
    }
    text += "\n\n";
  }
  yield Buffer.from(text);
}

const CR = 0x0d;
const LF = 0x0a;

/** A line for each. Only between the tokens of a payload are there line breaks, so that one more or less means the same. */
function dataLines(json: string): string {
  return json.replaceAll(/[\r\n]/g, "\ndata: ");
}

/** Cuts bytes into lines; they stay as they are where they have no line break. */
function* dataPieces(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  const hasBreaks = bytes.includes(LF) || bytes.includes(CR);
  // A line break becomes seven bytes.
  const length = hasBreaks ? PIECE_BYTES / 8 : PIECE_BYTES;
  for (let at = 0; at < bytes.length; at += length) {
    const piece = bytes.subarray(at, at + length);
    yield hasBreaks ? Buffer.from(dataLines(Buffer.from(piece).toString("latin1")), "latin1") : piece;
  }
}

function* base64Pieces(bytes: Uint8Array): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += BASE64_BYTES) {
    yield Buffer.from(Buffer.from(bytes.subarray(at, at + BASE64_BYTES)).toString("base64"));
  }
}
