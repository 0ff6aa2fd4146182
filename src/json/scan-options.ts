import type { LineCount } from "./fault.ts";
import type { JsonSpan } from "./node.ts";

/** What a scan is to hold a document to, and which of its parts it is to tell. */
export interface ScanOptions {
  /** The part of `bytes` that is the document; all of it unless told. Places in errors count from the first byte of all. */
  readonly span?: JsonSpan;
  /** Levels of objects and arrays allowed, the outermost counted; as a payload may have unless told. */
  readonly maxNesting?: number;
  /** Levels an envelope may add to those. They are not the caller's, so a refusal does not count them. */
  readonly envelopeLevels?: number;
  /**
   * How many children to record in each container, one number a level from the root down: `[8]` records the first eight
   * members of the root, `[8, 1000]` also the first thousand children of each of those. What is not recorded is checked
   * and counted all the same.
   */
  readonly record?: readonly number[];
  /** Refuse duplicate keys (among those recorded) and lone surrogates only in so many of the upper levels; all unless told. */
  readonly strictLevels?: number;
  /** Refuse an object with more keys (as `width`): to compare very many takes long, and that at one go. */
  readonly maxKeys?: number;
  /** Counts lines on from the last fault in the same bytes. */
  readonly lines?: LineCount;
}
