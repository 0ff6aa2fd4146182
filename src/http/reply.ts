import { encodeJson } from "../json/encode.ts";

/** One answer before the headers that all answers share. */
export interface Reply {
  readonly status: number;
  /** A whole document, of JSON unless `mediaType` names another. A string goes out in one piece with its headers, which is the cheapest for small ones. */
  readonly body: string | Pieces | Flow;
  readonly headers?: readonly HeaderPair[];
  readonly mediaType?: string;
  /** Called once the answer is out, or its caller gone. */
  readonly release?: () => void;
}

/** A document cut up anywhere, to be written one piece after the other. */
export type Pieces = readonly Uint8Array[];

/** A document that is too large to be held; it is read as fast as its caller takes it. */
export interface Flow {
  readonly bytes: number;
  readonly pieces: AsyncIterable<Uint8Array>;
}

export type HeaderPair = readonly [name: string, value: string];

/** A reply of any JSON-shaped value. */
export function reply(status: number, value: unknown, headers?: readonly HeaderPair[]): Reply {
  const body = encodeJson(value);
  return headers === undefined ? { status, body } : { status, body, headers };
}

/** @returns bytes in UTF-8 */
export function sizeOf(body: Reply["body"]): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  if (isFlow(body)) return body.bytes;
  return body.reduce((bytes, piece) => bytes + piece.length, 0);
}

export function isFlow(body: Reply["body"]): body is Flow {
  return typeof body === "object" && "pieces" in body;
}
