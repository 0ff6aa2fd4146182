import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface PipelineLimits {
  /** Requests of one connection that are worked on, or whose answers are not yet taken, at the same time. */
  readonly maxRunning: number;
  /** Requests that wait behind those. */
  readonly maxWaiting: number;
}

/** Requests of all connections together that run beside another one of theirs: each may hold a small body and answer. */
const ALL_BESIDE_MAX = 2_048;

/** What the requests that wait on all connections take together, by the length of their headers and what node makes of one. */
const ALL_WAITING_BYTES = 32 * 1024 * 1024;
const REQUEST_BYTES = 2 * 1024;

interface Pipeline {
  running: number;
  /** Those of them that were begun beside another. */
  beside: number;
  pauseDue: boolean;
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[];
}

/**
 * Bounds what a caller can start that sends request after request and does not read the answers. Node stops reading from
 * it once answers pile up, but by then it has handed over all that had arrived, and each would be worked on at once.
 *
 * A connection with one request at a time costs nothing here.
 */
export class Pipelines {
  readonly #start: (request: IncomingMessage, response: ServerResponse) => void;
  readonly #pipelines = new WeakMap<Socket, Pipeline>();
  readonly #limits: PipelineLimits;
  #beside = 0;
  #waitingBytes = 0;

  constructor(start: (request: IncomingMessage, response: ServerResponse) => void, limits: PipelineLimits) {
    this.#start = start;
    this.#limits = limits;
  }

  /**
   * Starts the request, now or when enough of those before it are answered. Beyond all bounds the connection is cut.
   * @param previous the answer to the connection's request before this one
   */
  admit(request: IncomingMessage, response: ServerResponse, previous: ServerResponse | undefined): void {
    // Answers go out in order: with this one out, all are.
    if (previous === undefined || previous.writableFinished) {
      this.#start(request, response);
      return;
    }
    const { socket } = request;
    if (socket.destroyed) return;
    const pipeline = this.#pipelines.get(socket) ?? this.#open(socket, previous);
    if (pipeline.running < this.#limits.maxRunning && this.#beside < ALL_BESIDE_MAX) {
      this.#run(pipeline, request, response);
      return;
    }
    const bytes = bytesOf(request);
    const isFull = this.#waitingBytes + bytes > ALL_WAITING_BYTES;
    if (isFull || pipeline.waiting.length >= this.#limits.maxWaiting) {
      socket.destroy();
      return;
    }
    pipeline.waiting.push([request, response]);
    this.#waitingBytes += bytes;
    // Not at once: node reads on after each message it has parsed, until it is through with what arrived together.
    if (pipeline.pauseDue) return;
    pipeline.pauseDue = true;
    process.nextTick(pauseIfWaiting, socket, pipeline);
  }

  #open(socket: Socket, first: ServerResponse): Pipeline {
    const pipeline: Pipeline = { running: 1, beside: 0, pauseDue: false, waiting: [] };
    this.#pipelines.set(socket, pipeline);
    first.once("close", () => this.#ended(socket, pipeline));
    socket.once("close", () => {
      for (const [request] of pipeline.waiting) this.#waitingBytes -= bytesOf(request);
      pipeline.waiting.length = 0;
      this.#beside -= pipeline.beside;
      pipeline.beside = 0;
    });
    return pipeline;
  }

  #run(pipeline: Pipeline, request: IncomingMessage, response: ServerResponse): void {
    pipeline.running += 1;
    pipeline.beside += 1;
    this.#beside += 1;
    response.once("close", () => {
      // Not once the connection is gone, which gave all of its own back.
      if (pipeline.beside > 0) {
        pipeline.beside -= 1;
        this.#beside -= 1;
      }
      this.#ended(request.socket, pipeline);
    });
    this.#start(request, response);
  }

  #ended(socket: Socket, pipeline: Pipeline): void {
    pipeline.running -= 1;
    if (socket.destroyed) return;
    const next = pipeline.waiting.shift();
    if (next === undefined) return;
    this.#waitingBytes -= bytesOf(next[0]);
    this.#run(pipeline, ...next);
    if (pipeline.waiting.length === 0) socket.resume();
  }
}

/** What a request takes that waits. */
function bytesOf({ rawHeaders, url = "" }: IncomingMessage): number {
  let bytes = REQUEST_BYTES + url.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

function pauseIfWaiting(socket: Socket, pipeline: Pipeline): void {
  pipeline.pauseDue = false;
  if (pipeline.waiting.length > 0) socket.pause();
}
