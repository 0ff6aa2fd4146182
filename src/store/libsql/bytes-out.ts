/** Where bytes lie in the one buffer that goes with a message: offset, length. */
export type Span = readonly [offset: number, length: number];

/** Gathers the byte strings of an answer, to be handed over in one transferred buffer. */
export class BytesOut {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  add(bytes: ArrayBuffer | Uint8Array): Span {
    const part = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
    const span: Span = [this.#length, part.byteLength];
    this.#parts.push(part);
    this.#length += part.byteLength;
    return span;
  }

  /** All of them one behind the other; `undefined` when there is not a byte. */
  pack(): ArrayBuffer | undefined {
    if (this.#length === 0) return undefined;
    const packed = new Uint8Array(this.#length);
    let offset = 0;
    for (const part of this.#parts) {
      packed.set(part, offset);
      offset += part.byteLength;
    }
    return packed.buffer;
  }
}

export function bytesAt(buffer: ArrayBuffer | undefined, [offset, length]: Span): Uint8Array {
  return buffer === undefined ? new Uint8Array(0) : new Uint8Array(buffer, offset, length);
}
