import { crc32 } from "node:zlib";

/**
 * What is kept beside an event to tell whether its payload is still the one that was accepted: the CRC-32 (as in zip and
 * PNG) of `<rowid>.<rowid of the action>.` and the payload's bytes behind it. With the two numbers in it, a payload under
 * another event, or an event under another action, is found out too.
 *
 * It finds every run of up to 32 changed bits, and of other damage all but one in four billion. It is no signature: who
 * can write to the file can write a checksum that fits.
 */
export function eventChecksum(rowid: number, actionId: number, payload: Uint8Array): number {
  return crc32(payload, crc32(`${rowid}.${actionId}.`));
}

/** @param checksum as it is kept: `null` of an event from before there were any, of which nothing is known */
export function isWhole(
  rowid: number,
  actionId: number,
  payload: Uint8Array,
  checksum: number | null,
): boolean {
  return checksum === null || eventChecksum(rowid, actionId, payload) === checksum;
}
