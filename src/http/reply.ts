import { encodeJson } from "../json/encode.ts";

/** One answer before the headers that all answers share. */
export interface Reply {
  readonly status: number;
  /** A whole JSON document. A string goes out in one piece with its headers, which is the cheapest for small ones. */
  readonly body: string | Uint8Array;
  readonly headers?: readonly HeaderPair[];
}

export type HeaderPair = readonly [name: string, value: string];

/** A reply of any JSON-shaped value. */
export function reply(status: number, value: unknown, headers?: readonly HeaderPair[]): Reply {
  const body = encodeJson(value);
  return headers === undefined ? { status, body } : { status, body, headers };
}
