import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export interface PipelineLimits {
  /** Requests of one connection that are worked on, or whose answers are not yet taken, at the same time. */
  readonly maxRunning: number;
  /** Requests that wait behind those. */
  readonly maxWaiting: number;
}

/** Requests that wait on all connections together, at some kilobytes of memory each. */
const ALL_WAITING_MAX = 16_384;

interface Pipeline {
  running: number;
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
  #waiting = 0;

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
    if (pipeline.running < this.#limits.maxRunning) {
      this.#run(pipeline, request, response);
      return;
    }
    if (pipeline.waiting.length >= this.#limits.maxWaiting || this.#waiting >= ALL_WAITING_MAX) {
      socket.destroy();
      return;
    }
    pipeline.waiting.push([request, response]);
    this.#waiting += 1;
    // Not at once: node reads on after each message it has parsed, until it is through with what arrived together.
    if (pipeline.pauseDue) return;
    pipeline.pauseDue = true;
    process.nextTick(pauseIfWaiting, socket, pipeline);
  }

  #open(socket: Socket, first: ServerResponse): Pipeline {
    const pipeline: Pipeline = { running: 1, pauseDue: false, waiting: [] };
    this.#pipelines.set(socket, pipeline);
    first.once("close", () => this.#ended(socket, pipeline));
    socket.once("close", () => {
      this.#waiting -= pipeline.waiting.length;
      pipeline.waiting.length = 0;
    });
    return pipeline;
  }

  #run(pipeline: Pipeline, request: IncomingMessage, response: ServerResponse): void {
    pipeline.running += 1;
    response.once("close", () => this.#ended(request.socket, pipeline));
    this.#start(request, response);
  }

  #ended(socket: Socket, pipeline: Pipeline): void {
    pipeline.running -= 1;
    if (socket.destroyed) return;
    const next = pipeline.waiting.shift();
    if (next === undefined) return;
    this.#waiting -= 1;
    this.#run(pipeline, ...next);
    if (pipeline.waiting.length === 0) socket.resume();
  }
}

function pauseIfWaiting(socket: Socket, pipeline: Pipeline): void {
  pipeline.pauseDue = false;
  if (pipeline.waiting.length > 0) socket.pause();
}
