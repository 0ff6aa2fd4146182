/** A message of an event stream as it came. */
export interface RawMessage {
  /** `message` where it has no name. */
  readonly type: string;
  /** Its lines, joined by LF; empty where only an id came. */
  readonly data: Uint8Array;
  /** The last id so far. */
  readonly id: string;
}

const [LF, COLON, SPACE] = [0x0a, 0x3a, 0x20];
const BREAK = Buffer.of(LF);

/** A message beyond this is not evreg's: a payload has 16 MiB at most, and with carriage returns comes twice. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/**
 * Takes an event stream apart (WHATWG HTML, 9.2.6). By bytes, as payloads are to stay what they are. Other than there, lines end by LF alone, as evreg
 * writes them, and an id without data is a message too: so the id moves on while nothing else comes. Of one that is cut off nothing is
 * answered.
 */
export class EventStreamParser {
  /** The beginning of a line. */
  #rest: Buffer[] = [];
  #type = "";
  #id = "";
  #hasId = false;
  #data: Buffer[] = [];
  /** About so many have come since the last message. */
  #bytes = 0;

  /** The messages that this piece completes. */
  push(piece: Uint8Array): readonly RawMessage[] {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    this.#bytes += bytes.length;
    if (this.#bytes > MAX_MESSAGE_BYTES) throw new RangeError("a message of the stream is too large");
    const messages: RawMessage[] = [];
    let start = 0;
    for (let end = bytes.indexOf(LF); end !== -1; end = bytes.indexOf(LF, start)) {
      const message = this.#line(this.#whole(bytes.subarray(start, end)));
      if (message !== undefined) messages.push(message);
      start = end + 1;
    }
    if (start < bytes.length) this.#rest.push(bytes.subarray(start));
    return messages;
  }

  #whole(end: Buffer): Buffer {
    if (this.#rest.length === 0) return end;
    const line = Buffer.concat([...this.#rest, end]);
    this.#rest = [];
    return line;
  }

  #line(line: Buffer): RawMessage | undefined {
    if (line.length === 0) return this.#end();
    const colon = line.indexOf(COLON);
    if (colon === 0) return undefined;
    const name = line.toString("latin1", 0, colon === -1 ? line.length : colon);
    const begin = colon === -1 ? line.length : colon + (line[colon + 1] === SPACE ? 2 : 1);
    const value = line.subarray(begin);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#type = value.toString();
    else if (name === "id" && !value.includes(0)) {
      this.#id = value.toString();
      this.#hasId = true;
    }
    return undefined;
  }

  #end(): RawMessage | undefined {
    const lines = this.#data;
    const type = this.#type === "" ? "message" : this.#type;
    const isMessage = lines.length > 0 || this.#hasId;
    this.#data = [];
    this.#type = "";
    this.#hasId = false;
    this.#bytes = 0;
    if (!isMessage) return undefined;
    const data = Buffer.concat(lines.flatMap((line, at) => (at === 0 ? [line] : [BREAK, line])));
    return { type, id: this.#id, data };
  }
}
