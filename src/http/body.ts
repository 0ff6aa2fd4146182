import type { IncomingMessage, ServerResponse } from "node:http";
import { EvregError } from "../domain/error.ts";
import type { Reservation } from "../runtime/byte-budget.ts";
import { isEnding } from "./connections.ts";

/** The connection ended before the request did: there is nobody left to answer. */
export class ClientDisconnected extends Error {
  override readonly name = "CallerGone";
}

/** A body up to this size takes no room: as many connections as there may be have so much each. */
const FREE_BYTES = 16 * 1024;

/** Where a body gets its memory from. */
export interface BodyMemory {
  /** @param evict ends the reading, or once it is read the request, as the caller is too slow while others wait */
  tryReserve(bytes: number, evict: (refusal: EvregError) => void): Reservation | undefined;
  /** The same, waiting for it. `unavailable` when it does not come free in time. */
  reserve(bytes: number, evict: (refusal: EvregError) => void): Promise<Reservation>;
}

/**
 * Reads a request's body, never holding more than `maxBytes` of it: a declared length is refused before the first byte
 * is read, an undeclared one as soon as it runs over. Once it has sent more than is free, a body needs room for its
 * declared length, without one for `maxBytes`; until there is room, nothing more is taken off the wire.
 * `too_large` with `details: { limit, size }`, where `size` is the declared length or, without one, what had arrived;
 * `malformed` when there is none; `unavailable` when there is no room, or its caller is too slow while others wait.
 */
export function readNodeBody(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  roomOf: () => BodyMemory,
): Promise<Uint8Array> {
  const { "content-length": declared, expect } = request.headers;
  const longest = declared === undefined ? maxBytes : Number(declared);
  if (longest > maxBytes) return Promise.reject(tooLarge(maxBytes, longest));
  // The caller asked before sending: only now is it certain that its body is wanted.
  if (expect !== undefined && /^100-continue$/i.test(expect)) response.writeContinue();
  return new Promise((resolve, reject) => {
    let only: Uint8Array | undefined;
    let gathered: Buffer<ArrayBuffer> | undefined;
    let size = 0;
    let roomBytes = FREE_BYTES;
    let share: Reservation | undefined;
    let over = false;
    const fail = (error: Error): void => {
      over = true;
      // At once, as its bytes count as free from here on.
      gathered?.buffer.transfer(0);
      only = gathered = undefined;
      share?.release();
      request.off("data", onData).pause();
      reject(error);
    };
    const evict = (refusal: EvregError): void => {
      if (over) request.socket.destroy();
      else fail(refusal);
    };
    const keep = (chunk: Uint8Array): void => {
      if (size === chunk.length) only = chunk;
      else {
        // At once into one buffer: a list of chunks of a byte each would take a hundred times their bytes.
        if (gathered === undefined || gathered.length < size) {
          const wanted = declared === undefined ? Math.max(2 * size, FREE_BYTES) : longest;
          const larger = Buffer.allocUnsafeSlow(Math.min(wanted, longest, roomBytes));
          larger.set(gathered ?? only ?? []);
          gathered = larger;
          only = undefined;
        }
        gathered.set(chunk, size - chunk.length);
      }
      share?.transferred(chunk.length);
    };
    const granted = (given: Reservation): void => {
      share = given;
      roomBytes = maxBytes;
      share.startTransfer(0);
    };
    const onData = (chunk: Uint8Array): void => {
      size += chunk.length;
      if (size > maxBytes) fail(tooLarge(maxBytes, size));
      else if (size <= roomBytes) keep(chunk);
      else {
        const room = roomOf();
        const given = room.tryReserve(longest, evict);
        if (given !== undefined) {
          granted(given);
          keep(chunk);
          return;
        }
        request.pause();
        void whenThereIsRoom(room, chunk);
      }
    };
    const whenThereIsRoom = async (room: BodyMemory, chunk: Uint8Array): Promise<void> => {
      try {
        granted(await room.reserve(longest, evict));
        if (over) share?.release();
        else {
          keep(chunk);
          request.resume();
        }
      } catch (error) {
        if (!over) fail(error as Error);
      }
    };
    const onEnd = (): void => {
      // It was refused as too slow, and came to its end all the same before the connection did.
      if (isEnding(request.socket)) {
        onClose();
        return;
      }
      if (over) return;
      over = true;
      // From here on it is evreg's turn.
      share?.endTransfer();
      if (gathered !== undefined) resolve(gathered.length === size ? gathered : gathered.subarray(0, size));
      else if (only !== undefined) resolve(only);
      else reject(noBody());
    };
    // Comes in any case: after the end, or with none once the caller is gone.
    const onClose = (): void => {
      if (!over) fail(new ClientDisconnected("The connection ended before the request did."));
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
