const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = /\r\ncontent-length:[ \t]*(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding:/i;

export interface HttpReaderOptions {
  /** A whole message. `body` is there when `keepsBody` said so. */
  readonly onMessage: (head: string, body: Buffer | undefined) => void;
  /** Asked once a message, with its head: whether its body is wanted. Bodies that are not are only counted. */
  readonly keepsBody: (head: string) => boolean;
}

/**
 * Cuts a stream of HTTP/1.1 messages, requests or answers, by their `Content-Length`, however the bytes are split over
 * chunks. It knows no other way to end a body: a message without a length has none, and a chunked one is refused.
 */
export class HttpReader {
  readonly #options: HttpReaderOptions;
  /** The beginning of a head that a chunk ended in. */
  #cut: Buffer | undefined;
  #head: string | undefined;
  #missingBytes = 0;
  #body: Buffer[] | undefined;

  constructor(options: HttpReaderOptions) {
    this.#options = options;
  }

  push(arrived: Buffer): void {
    const chunk = this.#cut === undefined ? arrived : Buffer.concat([this.#cut, arrived]);
    this.#cut = undefined;
    let at = 0;
    while (at < chunk.length) {
      if (this.#head === undefined) {
        const end = chunk.indexOf(HEAD_END, at);
        if (end === -1) {
          this.#cut = chunk.subarray(at);
          return;
        }
        this.#begin(chunk.toString("latin1", at, end));
        at = end + HEAD_END.length;
      } else {
        const taken = Math.min(this.#missingBytes, chunk.length - at);
        this.#body?.push(chunk.subarray(at, at + taken));
        this.#missingBytes -= taken;
        at += taken;
      }
      if (this.#missingBytes === 0) this.#end();
    }
  }

  #begin(head: string): void {
    const length = LENGTH.exec(head)?.[1];
    if (length === undefined && CHUNKED.test(head)) {
      throw new Error(`A message without Content-Length:\n${head}`);
    }
    this.#head = head;
    this.#missingBytes = Number(length ?? 0);
    this.#body = this.#options.keepsBody(head) ? [] : undefined;
  }

  #end(): void {
    const head = this.#head ?? "";
    const body = this.#body === undefined ? undefined : Buffer.concat(this.#body);
    this.#head = undefined;
    this.#body = undefined;
    this.#options.onMessage(head, body);
  }
}
