import { framesObject } from "../json/object-frame.ts";
import { EvregError } from "./error.ts";
import { EVENT_LIMITS, type NewEvent } from "./event.ts";
import { parseBatchItem } from "./publish-body.ts";

const KEY_NAME = "idempotency_key";

/**
 * An item of a batch as the line that it was written on, not read yet: whoever passes it on need not, and whoever takes it
 * in reads it anyway.
 */
export class EventLine {
  /** `{ … }` with at least one member, none of them a key; its bytes keep to themselves when they are put between others. */
  readonly bytes: Uint8Array;
  readonly idempotency_key: string | undefined;

  private constructor(bytes: Uint8Array, key: string | undefined) {
    this.bytes = bytes;
    this.idempotency_key = key;
  }

  /**
   * The item on a line, or why there is none: told at once of a line that has to be read to be passed on. How large a
   * payload may be is for the target to say.
   * @param keyOf the idempotency key of a line that names none
   */
  static from(bytes: Uint8Array, keyOf: (() => string) | undefined): BatchItem {
    if (framesObject(bytes, KEY_NAME)) return new EventLine(bytes, keyOf?.());
    return readEvent(bytes, keyOf);
  }

  read(): NewEvent | EvregError {
    const { idempotency_key: key } = this;
    return readEvent(this.bytes, key === undefined ? undefined : () => key);
  }
}

/** What a batch is made of: an event, one not read yet, or why one could not be read. */
export type BatchItem = NewEvent | EventLine | EvregError;

export function readItem(item: BatchItem): NewEvent | EvregError {
  return item instanceof EventLine ? item.read() : item;
}

function readEvent(bytes: Uint8Array, keyOf: (() => string) | undefined): NewEvent | EvregError {
  try {
    const event = parseBatchItem(bytes, { payloadBytes: EVENT_LIMITS.batchBytes });
    if (keyOf === undefined || event.idempotency_key !== undefined) return event;
    return { ...event, idempotency_key: keyOf() };
  } catch (error) {
    if (error instanceof EvregError) return placedInLine(error);
    throw error;
  }
}

/** A fault's place within its line: that it is "line 1" of it would only contradict the line's number. */
function placedInLine(error: EvregError): EvregError {
  if (error.code !== "malformed") return error;
  const { column, byte, reason } = error.details;
  const message = error.message.replace(/ at line 1, column (\d+) \(byte \d+\)/, " at column $1");
  return new EvregError("malformed", message, { column, byte, reason });
}
