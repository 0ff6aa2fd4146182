import type { IncomingMessage, ServerResponse } from "node:http";
import { EvregError } from "../domain/error.ts";
import type { Reservation } from "../runtime/byte-budget.ts";
import { isEnding } from "./connections.ts";

/** The connection ended before the request did, so nobody can be answered. */
export class ClientDisconnected extends Error {
  override readonly name = "ClientDisconnected";
}

/** A body up to this size reserves no memory: every connection may have one. */
const FREE_BYTES = 16 * 1024;

/** Where a body gets its memory from. */
export interface BodyMemory {
  /** @param evict ends the reading or, once it is read, the request, as the client is too slow while others wait */
  tryReserve(bytes: number, evict: (refusal: EvregError) => void): Reservation | undefined;
  /** The same, waiting for it. `unavailable` when it does not come free in time. */
  reserve(bytes: number, evict: (refusal: EvregError) => void): Promise<Reservation>;
}

/**
 * Reads a request's body, never holding more than `maxBytes` of it: a declared length is refused before the first byte is
 * read, an undeclared one as soon as it is passed. Beyond `FREE_BYTES` a body reserves memory for its declared length, or
 * for `maxBytes`; nothing more is read until it has that.
 * `too_large` with `details: { limit, size }`, where `size` is the declared length or what had arrived; `malformed` without
 * a body; `unavailable` without memory, or when the client is too slow while others wait.
 */
export function readNodeBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  memoryOf: () => BodyMemory,
): Promise<Uint8Array> {
  const { "content-length": declared, expect } = request.headers;
  const longest = declared === undefined ? maxBytes : Number(declared);
  if (longest > maxBytes) return Promise.reject(tooLarge(maxBytes, longest));
  // Only now is it certain that the body is read.
  if (expect !== undefined && /^100-continue$/i.test(expect)) response.writeContinue();
  return new Promise((resolve, reject) => {
    let only: Uint8Array | undefined;
    let gathered: Buffer<ArrayBuffer> | undefined;
    let size = 0;
    let reservedBytes = FREE_BYTES;
    let reservation: Reservation | undefined;
    let isDone = false;
    const fail = (error: Error): void => {
      isDone = true;
      // Its bytes count as free from here on, so they are freed at once.
      gathered?.buffer.transfer(0);
      only = gathered = undefined;
      reservation?.release();
      request.off("data", onData).pause();
      reject(error);
    };
    const evict = (refusal: EvregError): void => {
      if (isDone) request.socket.destroy();
      else fail(refusal);
    };
    const keep = (chunk: Uint8Array): void => {
      if (size === chunk.length) only = chunk;
      else {
        // Into one buffer: a list of chunks of a byte each would take a hundred times their bytes.
        if (gathered === undefined || gathered.length < size) {
          const newBytes = declared === undefined ? Math.max(2 * size, FREE_BYTES) : longest;
          const larger = Buffer.allocUnsafeSlow(Math.min(newBytes, longest, reservedBytes));
          larger.set(gathered ?? only ?? []);
          gathered = larger;
          only = undefined;
        }
        gathered.set(chunk, size - chunk.length);
      }
      reservation?.transferred(chunk.length);
    };
    const granted = (given: Reservation): void => {
      reservation = given;
      reservedBytes = maxBytes;
      reservation.startTransfer(0);
    };
    const onData = (chunk: Uint8Array): void => {
      size += chunk.length;
      if (size > maxBytes) fail(tooLarge(maxBytes, size));
      else if (size <= reservedBytes) keep(chunk);
      else {
        const memory = memoryOf();
        const immediate = memory.tryReserve(longest, evict);
        if (immediate !== undefined) {
          granted(immediate);
          keep(chunk);
          return;
        }
        request.pause();
        void reserve(memory, chunk);
      }
    };
    const reserve = async (memory: BodyMemory, chunk: Uint8Array): Promise<void> => {
      try {
        granted(await memory.reserve(longest, evict));
        if (isDone) reservation?.release();
        else {
          keep(chunk);
          request.resume();
        }
      } catch (error) {
        if (!isDone) fail(error as Error);
      }
    };
    const onEnd = (): void => {
      // It was refused as too slow, and its end arrived before the connection's.
      if (isEnding(request.socket)) {
        onClose();
        return;
      }
      if (isDone) return;
      isDone = true;
      // evreg works from here on, and the client waits.
      reservation?.endTransfer();
      if (gathered !== undefined) resolve(gathered.length === size ? gathered : gathered.subarray(0, size));
      else if (only !== undefined) resolve(only);
      else reject(noBody());
    };
    // Comes in any case: after the end, or without one when the client disconnects.
    const onClose = (): void => {
      if (!isDone) fail(new ClientDisconnected("The connection ended before the request did."));
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
