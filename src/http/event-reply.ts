import type { BatchResult, Event, PageMeta } from "../domain/event.ts";
import type { HeaderPair, Pieces, Reply } from "./reply.ts";

/**
 * Above this many payload bytes an answer is a row of pieces, the payloads as they lie in memory: a string of it would
 * be written twice over, and past 512 MiB could not exist at all.
 */
const STRING_MAX_BYTES = 256 * 1024;

/** Small pieces are put together up to this size, as each costs a call to the system. */
const PIECE_BYTES = 64 * 1024;

/** The members that `head` and `tail` write. A member added to `Event` makes this line fail to compile. */
const WRITTEN: Record<keyof Event, true> = {
  rowid: true,
  action: true,
  payload: true,
  revision: true,
  timestamped: true,
};
void WRITTEN;

function head(event: Event): string {
  return `{"rowid":${event.rowid},"action":${JSON.stringify(event.action)},"payload":`;
}

function tail(event: Event): string {
  return `,"revision":${event.revision},"timestamped":"${event.timestamped}"}`;
}

/** `{ data: Event }`, the payload's bytes as they came. */
export function eventReply(status: number, event: Event, headers?: readonly HeaderPair[]): Reply {
  const body = write('{"data":', [event], "}", event.payload.bytes.length);
  return headers === undefined ? { status, body } : { status, body, headers };
}

export function eventListReply(data: readonly Event[], meta: PageMeta): Reply {
  return { status: 200, body: writeList(data, `],"meta":${JSON.stringify(meta)}}`) };
}

/** 201 when all were accepted, 207 for some, 422 for none; that last one is a failure and has a failure's members too. */
export function batchReply({ data, errors, meta }: BatchResult): Reply {
  const status = meta.rejected === 0 ? 201 : meta.accepted === 0 ? 422 : 207;
  const failure =
    status === 422 ? { error: noneAccepted(errors.length), details: { ...meta }, code: 422 } : {};
  const rest = JSON.stringify({ errors, meta, ...failure });
  return { status, body: writeList(data, `],${rest.slice(1)}`) };
}

function noneAccepted(count: number): string {
  return `None of the events was stored; \`errors\` says of ${count === 1 ? "one" : count} what is wrong.`;
}

/** The bytes of their payloads, which is what a large answer takes in memory. */
export function payloadBytesOf(events: readonly (Event | null)[]): number {
  let bytes = 0;
  for (const event of events) bytes += event === null ? 0 : event.payload.bytes.length;
  return bytes;
}

function writeList(events: readonly (Event | null)[], end: string): string | Pieces {
  return write('{"data":[', events, end, payloadBytesOf(events));
}

function write(
  start: string,
  events: readonly (Event | null)[],
  end: string,
  payloadBytes: number,
): string | Pieces {
  if (payloadBytes <= STRING_MAX_BYTES) {
    let text = start;
    let comma = "";
    for (const event of events) {
      text += event === null ? `${comma}null` : comma + head(event) + event.payload.text() + tail(event);
      comma = ",";
    }
    return text + end;
  }
  const pieces: Uint8Array[] = [];
  let small: Uint8Array[] = [];
  let smallBytes = 0;
  const flush = (): void => {
    if (smallBytes > 0) pieces.push(Buffer.concat(small, smallBytes));
    small = [];
    smallBytes = 0;
  };
  const add = (bytes: Uint8Array): void => {
    if (smallBytes + bytes.length > PIECE_BYTES) flush();
    if (bytes.length > PIECE_BYTES) {
      pieces.push(bytes);
      return;
    }
    small.push(bytes);
    smallBytes += bytes.length;
  };
  add(Buffer.from(start));
  let comma = "";
  for (const event of events) {
    if (event === null) add(Buffer.from(`${comma}null`));
    else {
      add(Buffer.from(comma + head(event)));
      add(event.payload.bytes);
      add(Buffer.from(tail(event)));
    }
    comma = ",";
  }
  add(Buffer.from(end));
  flush();
  return pieces;
}
