import { linkSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Note } from "./notes.ts";

const SECTOR_BYTES = 512;
/** What the system's cache writes at once. */
const PAGE_BYTES = 4_096;

/** A change of a file's contents that no fsync has made durable. */
type Change =
  | {
      readonly kind: "write";
      readonly at: number;
      readonly bytes: Buffer;
      /** Its fsync failed: the system takes its pages for clean, and writes them with no later one. */
      isClean: boolean;
    }
  | { readonly kind: "cut"; readonly bytes: number };

interface File {
  readonly kind: "file";
  /** As programs read it. */
  readonly cached: Contents;
  /** As it is on the disk for sure. */
  readonly stored: Contents;
  /** What may be on the disk as well, in whole, in part or not at all; in order. */
  changes: Change[];
}

interface Folder {
  readonly kind: "folder";
  readonly cached: Map<string, Entry>;
  stored: Map<string, Entry>;
  /** Names set (or, without an entry, removed) since the folder's last fsync; those of one rename in one step. */
  changes: ReadonlyMap<string, Entry | undefined>[];
}

type Entry = File | Folder;

/** How much of what is not durable a cut leaves. */
export type Leaving = "nothing" | "everything" | "some";

/**
 * What a disk may hold while a program writes to it: what was made durable is there; of the rest each sector may be there,
 * not be there, or be torn, and so may each name.
 *
 * Harder than most file systems, which keep the order of names and let an fsync of a new file store its name as well; but
 * it is what POSIX promises, and a rename is one step here too.
 */
export class Disk {
  readonly #root: Folder;
  readonly #entries = new Map<number, Entry>();

  /** @param folder as it is before anything is recorded; all of it counts as durable */
  constructor(folder: string) {
    this.#root = this.#load(folder) as Folder;
  }

  apply(note: Note): void {
    const { kind, inode, at, path, bytes } = note;
    switch (kind) {
      case "created":
      case "folder": {
        const entry = kind === "created" ? newFile() : newFolder();
        this.#entries.set(inode, entry);
        return this.#set(path, entry);
      }
      case "written": {
        const file = this.#file(inode);
        file.cached.write(at, bytes);
        file.changes.push({ kind: "write", at, bytes, isClean: false });
        return;
      }
      case "cut": {
        const file = this.#file(inode);
        file.cached.cut(at);
        file.changes.push({ kind: "cut", bytes: at });
        return;
      }
      case "synced": {
        const entry = this.#entries.get(inode);
        if (entry === undefined) throw new Error(`inode ${inode} was synced and never opened`);
        if (entry.kind === "file") return syncFile(entry);
        entry.stored = new Map(entry.cached);
        entry.changes = [];
        return;
      }
      case "sync-failed":
        for (const change of this.#file(inode).changes) if (change.kind === "write") change.isClean = true;
        return;
      case "renamed":
        return this.#rename(path, note.to);
      case "linked":
        return this.#set(note.to, this.#at(path));
      case "removed":
        return this.#set(path, undefined);
      case "not-noted":
        throw new Error(`the recorder cannot note what the program did: ${path}`);
    }
  }

  /**
   * Writes what a cut of the power at this moment may leave into an empty folder.
   * @param random from 0 to 1; the same numbers make the same image
   */
  write(folder: string, leaving: Leaving, random: () => number): void {
    const made = new Map<File, string>();
    const writeEntry = (entry: Entry, path: string): void => {
      if (entry.kind === "folder") {
        mkdirSync(path, { recursive: true, mode: 0o700 });
        for (const [name, child] of namesAfter(entry, leaving, random)) writeEntry(child, join(path, name));
        return;
      }
      const first = made.get(entry);
      // By two names it is still one file.
      if (first !== undefined) return linkSync(first, path);
      made.set(entry, path);
      writeFileSync(path, contentsAfter(entry, leaving, random), { mode: 0o600 });
    };
    writeEntry(this.#root, folder);
  }

  #load(path: string): Entry {
    const { ino } = statSync(path);
    let entry: Entry;
    if (statSync(path).isDirectory()) {
      const names = readdirSync(path).map((name) => [name, this.#load(join(path, name))] as const);
      entry = { kind: "folder", cached: new Map(names), stored: new Map(names), changes: [] };
    } else entry = newFile(readFileSync(path));
    this.#entries.set(ino, entry);
    return entry;
  }

  #file(inode: number): File {
    const entry = this.#entries.get(inode);
    if (entry?.kind !== "file") throw new Error(`inode ${inode} was written to and never opened`);
    return entry;
  }

  #at(path: string): Entry {
    let entry: Entry | undefined = this.#root;
    for (const name of path.split("/")) {
      entry = entry.kind === "folder" ? entry.cached.get(name) : undefined;
      if (entry === undefined) throw new Error(`${path} is not there`);
    }
    return entry;
  }

  #folderOf(path: string): { folder: Folder; name: string } {
    const parent = dirname(path);
    const folder = parent === "." ? this.#root : this.#at(parent);
    if (folder.kind !== "folder") throw new Error(`${parent} is no folder`);
    return { folder, name: path.slice(parent === "." ? 0 : parent.length + 1) };
  }

  #set(path: string, entry: Entry | undefined): void {
    const { folder, name } = this.#folderOf(path);
    setNames(folder, new Map([[name, entry]]));
  }

  #rename(from: string, to: string): void {
    const entry = this.#at(from);
    const [old, next] = [this.#folderOf(from), this.#folderOf(to)];
    // Two names of one file: the system does nothing.
    if (next.folder.cached.get(next.name) === entry) return;
    if (old.folder !== next.folder) throw new Error(`${from} was renamed into another folder, ${to}`);
    setNames(
      old.folder,
      new Map([
        [old.name, undefined],
        [next.name, entry],
      ]),
    );
  }
}

/** Bytes that grow, with room for more, as a log is written a frame at a time. */
class Contents {
  #room: Buffer;
  #bytes: number;

  constructor(bytes: Buffer = Buffer.alloc(0)) {
    this.#room = Buffer.from(bytes);
    this.#bytes = bytes.length;
  }

  get all(): Buffer {
    return this.#room.subarray(0, this.#bytes);
  }

  write(at: number, bytes: Buffer): void {
    if (bytes.length === 0) return;
    if (at + bytes.length > this.#bytes) this.cut(at + bytes.length);
    bytes.copy(this.#room, at);
  }

  /** Also to more than there is, which reads as zeros. */
  cut(bytes: number): void {
    if (bytes > this.#room.length) {
      const room = Buffer.alloc(bytes * 2);
      this.all.copy(room);
      this.#room = room;
    } else this.#room.fill(0, Math.min(bytes, this.#bytes), Math.max(bytes, this.#bytes));
    this.#bytes = bytes;
  }

  apply(change: Change): void {
    if (change.kind === "cut") this.cut(change.bytes);
    else this.write(change.at, change.bytes);
  }
}

function newFile(bytes?: Buffer): File {
  return { kind: "file", cached: new Contents(bytes), stored: new Contents(bytes), changes: [] };
}

function newFolder(): Folder {
  return { kind: "folder", cached: new Map(), stored: new Map(), changes: [] };
}

function setNames(folder: Folder, names: ReadonlyMap<string, Entry | undefined>): void {
  setAll(folder.cached, names);
  folder.changes.push(names);
}

function setAll(into: Map<string, Entry>, names: ReadonlyMap<string, Entry | undefined>): void {
  for (const [name, entry] of names) {
    if (entry === undefined) into.delete(name);
    else into.set(name, entry);
  }
}

/** Makes durable all but what an fsync before has failed on and nothing was written to since. */
function syncFile(file: File): void {
  const kept = stillLost(file.changes);
  const before = kept.map(({ at }) => pageAt(file.stored.all, at));
  for (const one of file.changes) file.stored.apply(one);
  kept.forEach(({ at }, index) => {
    const start = startOfPage(at);
    file.stored.write(start, before[index]!.subarray(0, Math.max(0, file.stored.all.length - start)));
  });
  file.changes = kept;
}

/** What failed to be synced, page by page, unless it was written to or cut off since. */
function stillLost(changes: readonly Change[]): (Change & { kind: "write" })[] {
  if (!changes.some((one) => one.kind === "write" && one.isClean)) return [];
  const dirty = new Set<number>();
  let cutTo = Infinity;
  for (const one of changes) {
    if (one.kind === "cut") cutTo = Math.min(cutTo, one.bytes);
    else if (!one.isClean) for (const page of pagesOf(one)) dirty.add(page);
  }
  return changes
    .filter((one) => one.kind === "write")
    .filter(({ isClean }) => isClean)
    .flatMap((one) =>
      [...pagesOf(one)]
        .filter((page) => !dirty.has(page) && page * PAGE_BYTES < cutTo)
        .map((page) => {
          const from = Math.max(one.at, page * PAGE_BYTES);
          const to = Math.min(one.at + one.bytes.length, (page + 1) * PAGE_BYTES);
          return {
            kind: "write",
            at: from,
            bytes: one.bytes.subarray(from - one.at, to - one.at),
            isClean: true,
          };
        }),
    );
}

function startOfPage(at: number): number {
  return at - (at % PAGE_BYTES);
}

/** Past the end there is nothing but zeros. */
function pageAt(bytes: Buffer, at: number): Buffer {
  const page = Buffer.alloc(PAGE_BYTES);
  bytes.subarray(startOfPage(at), startOfPage(at) + PAGE_BYTES).copy(page);
  return page;
}

function* pagesOf({ at, bytes }: { readonly at: number; readonly bytes: Buffer }): Generator<number> {
  const last = Math.floor((at + bytes.length - 1) / PAGE_BYTES);
  for (let page = Math.floor(at / PAGE_BYTES); page <= last; page += 1) yield page;
}

function namesAfter(folder: Folder, leaving: Leaving, random: () => number): ReadonlyMap<string, Entry> {
  if (leaving === "everything") return folder.cached;
  if (leaving === "nothing") return folder.stored;
  const names = new Map(folder.stored);
  const share = random();
  // Half of the time in their order, as a journal has it.
  const end = random() < 0.5 ? Math.floor(random() * (folder.changes.length + 1)) : undefined;
  folder.changes.forEach((step, index) => {
    if (end === undefined ? random() < share : index < end) setAll(names, step);
  });
  return names;
}

function contentsAfter(file: File, leaving: Leaving, random: () => number): Buffer {
  if (leaving === "everything") return file.cached.all;
  if (leaving === "nothing" || file.changes.length === 0) return file.stored.all;
  const contents = new Contents(file.stored.all);
  const lengths = [contents.all.length];
  // Now and then in their order, with the last one whole.
  if (random() < 0.3) {
    for (const one of file.changes.slice(0, Math.floor(random() * file.changes.length) + 1))
      contents.apply(one);
    return contents.all;
  }
  const share = random();
  let length = contents.all.length;
  for (const one of file.changes) {
    length = one.kind === "cut" ? one.bytes : Math.max(length, one.at + one.bytes.length);
    lengths.push(length);
    if (one.kind === "cut") {
      if (random() < share) contents.cut(one.bytes);
      continue;
    }
    for (const [from, to] of sectorsOf(one)) {
      if (random() >= share) continue;
      // One in eight of those written is torn: only its beginning is there.
      const end = random() < 0.125 ? from + Math.floor(random() * (to - from)) : to;
      contents.write(from, one.bytes.subarray(from - one.at, end - one.at));
    }
  }
  contents.cut(lengths[Math.floor(random() * lengths.length)]!);
  return contents.all;
}

function* sectorsOf({
  at,
  bytes,
}: {
  readonly at: number;
  readonly bytes: Buffer;
}): Generator<readonly [number, number]> {
  const end = at + bytes.length;
  for (let from = at; from < end;) {
    const to = Math.min(end, (Math.floor(from / SECTOR_BYTES) + 1) * SECTOR_BYTES);
    yield [from, to];
    from = to;
  }
}
