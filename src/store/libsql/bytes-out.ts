/** Where bytes lie in the one buffer that goes with a message: offset, length. */
export type Span = readonly [offset: number, length: number];

/** Gathers the byte strings of an answer, to be handed over in one transferred buffer. */
export class BytesOut {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  /** @param bytes which are nobody else's from now on */
  add(bytes: ArrayBuffer): Span {
    const part = new Uint8Array(bytes);
    const span: Span = [this.#length, part.byteLength];
    this.#parts.push(part);
    this.#length += part.byteLength;
    return span;
  }

  /** How many there are by now. */
  get length(): number {
    return this.#length;
  }

  /** All of them one behind the other, to be asked for once; `undefined` when there is not a byte. */
  pack(): ArrayBuffer | undefined {
    if (this.#length === 0) return undefined;
    const packed = new Uint8Array(this.#length);
    let offset = 0;
    for (const part of this.#parts) {
      packed.set(part, offset);
      offset += part.byteLength;
      // Not left to V8, which seldom collects a heap of few and small objects, whatever they hold outside it.
      if (part.buffer instanceof ArrayBuffer) part.buffer.transfer(0);
    }
    return packed.buffer;
  }
}

export function bytesAt(buffer: ArrayBuffer | undefined, [offset, length]: Span): Uint8Array {
  return buffer === undefined ? new Uint8Array(0) : new Uint8Array(buffer, offset, length);
}
