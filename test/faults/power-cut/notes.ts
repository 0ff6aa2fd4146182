import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** In the order of `recorder.c`, from 1. */
const KINDS = [
  "created",
  "folder",
  "written",
  "cut",
  "synced",
  "sync-failed",
  "renamed",
  "linked",
  "removed",
  "not-noted",
] as const;

/** A call by which a program changed a file, or had it made durable. */
export interface Note {
  readonly kind: (typeof KINDS)[number];
  readonly inode: number;
  /** Where it was written; what it was cut to. */
  readonly at: number;
  /** Below the folder that is recorded; of a rename or a link, the name that was there before. */
  readonly path: string;
  readonly to: string;
  readonly bytes: Buffer;
  /** Bytes of all notes up to this one's end, which is a moment that something else can be told by. */
  readonly end: number;
}

const HEAD_BYTES = 32;

/** Reads the notes of `recorder.c`, of which there may be more than fit into memory at a time. */
export function* notesIn(path: string): Generator<Note> {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    for (let at = 0; at < size;) {
      const head = read(file, at, HEAD_BYTES);
      const kind = KINDS[head.readUInt32LE(0) - 1];
      if (kind === undefined) throw new Error(`${path} holds something else at ${at}`);
      const [first, second] = [head.readUInt32LE(4), head.readUInt32LE(8)];
      const body = read(file, at + HEAD_BYTES, first + second);
      const isContents = kind === "written";
      at += HEAD_BYTES + body.length;
      yield {
        kind,
        inode: Number(head.readBigUInt64LE(16)),
        at: Number(head.readBigUInt64LE(24)),
        path: isContents ? "" : body.toString("utf8", 0, first),
        to: body.toString("utf8", first),
        bytes: isContents ? body : Buffer.alloc(0),
        end: at,
      };
    }
  } finally {
    closeSync(file);
  }
}

function read(file: number, at: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length;) {
    const count = readSync(file, bytes, done, length - done, at + done);
    if (count === 0) throw new Error("the notes end in the middle of one");
    done += count;
  }
  return bytes;
}
