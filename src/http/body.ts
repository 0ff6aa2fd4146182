import type { IncomingMessage, ServerResponse } from "node:http";
import { EvregError } from "../domain/error.ts";
import { isEnding } from "./end-with.ts";

/** The connection ended before the request did: there is nobody left to answer. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

/**
 * Reads a request's body, never holding more than `maxBytes` of it: a declared length is refused before the first byte
 * is read, an undeclared one as soon as it runs over.
 * `too_large` with `details: { limit, size }`, where `size` is the declared length or, without one, what had arrived;
 * `malformed` when there is none.
 */
export function readNodeBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
): Promise<Uint8Array> {
  const declared = request.headers["content-length"];
  if (declared !== undefined && Number(declared) > maxBytes) {
    return Promise.reject(tooLarge(maxBytes, Number(declared)));
  }
  // The caller asked before sending: only now is it certain that its body is wanted.
  if (request.headers.expect !== undefined && /^100-continue$/i.test(request.headers.expect)) {
    response.writeContinue();
  }
  return new Promise((resolve, reject) => {
    let first: Uint8Array | undefined;
    let chunks: Uint8Array[] | undefined;
    let size = 0;
    let over = false;
    const onData = (chunk: Uint8Array): void => {
      size += chunk.length;
      if (size > maxBytes) {
        over = true;
        request.off("data", onData).pause();
        reject(tooLarge(maxBytes, size));
      } else if (first === undefined) first = chunk;
      else (chunks ??= [first]).push(chunk);
    };
    const onEnd = (): void => {
      // It was refused as too slow, and came to its end all the same before the connection did.
      if (isEnding(request.socket)) {
        onClose();
        return;
      }
      over = true;
      if (chunks !== undefined) resolve(Buffer.concat(chunks, size));
      else if (first !== undefined) resolve(first);
      else reject(noBody());
    };
    // Comes in any case: after the end, or with none once the caller is gone.
    const onClose = (): void => {
      if (over) return;
      over = true;
      reject(new CallerGone("The connection ended before the request did."));
    };
    if (request.destroyed) onClose();
    else request.on("data", onData).on("end", onEnd).on("close", onClose);
  });
}

/** The same for a request that came without a socket. */
export async function readWebBody(
  body: ReadableStream<Uint8Array> | null,
  declaredLength: string | null,
  maxBytes: number,
): Promise<Uint8Array> {
  if (declaredLength !== null && Number(declaredLength) > maxBytes) {
    throw tooLarge(maxBytes, Number(declaredLength));
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes, size);
    chunks.push(chunk);
  }
  if (size === 0) throw noBody();
  return Buffer.concat(chunks, size);
}

function noBody(): EvregError {
  return new EvregError("malformed", "The request has no body; send a JSON object.");
}

function tooLarge(limit: number, size: number): EvregError {
  return new EvregError(
    "too_large",
    `The request body is larger than the ${limit} bytes allowed here (${size} so far).`,
    { limit, size },
  );
}
