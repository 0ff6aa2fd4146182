// The log (WAL) of SQLite: a header, then a frame with its own header for each page that was written.
// See https://sqlite.org/fileformat2.html#walformat. No lock is ever held on it, so opening and closing it is harmless.

import { readvSync } from "node:fs";

export const LOG_HEADER_BYTES = 32;
export const FRAME_HEADER_BYTES = 24;
/** The page size of every file that evreg makes. */
export const PAGE_BYTES = 4_096;
/** Begins a log whose checksums are made of words with the lowest byte first, as on every machine that evreg runs on. */
const MAGIC = 0x377f0682;

export function isLogHeader(header: Buffer): boolean {
  return header.readUInt32BE(0) === MAGIC;
}

/** Two numbers that change each time the log restarts. Each frame repeats them. */
export function logSalts(header: Buffer): string {
  return header.toString("latin1", 16, 24);
}

export function frameSalts(block: Buffer, at = 0): string {
  return block.toString("latin1", at + 8, at + 16);
}

export function framePage(block: Buffer, at = 0): number {
  return block.readUInt32BE(at);
}

/** In the last frame of a commit, how many pages the data file has with it; 0 in all others. */
export function committedPages(block: Buffer, at = 0): number {
  return block.readUInt32BE(at + 4);
}

/** By another system call than the engine's, so that a test which fails those (`disk-errors`) hits only the engine. */
export function readLogHeader(log: number): Buffer {
  const header = Buffer.alloc(LOG_HEADER_BYTES);
  readvSync(log, [header], 0);
  return header;
}
