import type { Readable } from "node:stream";
import { HTTPResponse } from "h3";
import type { HeaderPair } from "./reply.ts";

export type AnswerBody = string | Uint8Array | Readable | null;

/**
 * A finished answer as h3 takes it. Its headers stay a list of pairs, which srvx writes as it is: as a `Headers` object,
 * built and read again for every answer, they would cost a quarter of the requests a second.
 */
export class HttpAnswer extends HTTPResponse {
  readonly #pairs: readonly HeaderPair[];

  constructor(status: number, pairs: readonly HeaderPair[], body: AnswerBody) {
    super(body, { status });
    this.#pairs = pairs;
  }

  override get headers(): Headers {
    return this.#pairs as unknown as Headers;
  }
}
