import type { JsonNode } from "./node.ts";
import { OpenContainers } from "./open-containers.ts";
import { Scan } from "./scan.ts";
import type { ScanOptions } from "./scan-options.ts";

/** Levels of objects and arrays in one payload, its own root counted. */
export const MAX_NESTING = 64;

/** Lets other work in. */
export interface Breather {
  /** To be asked before each step; if not, `breathe` is to be awaited. */
  mayGoOn(): boolean;
  breathe(): Promise<void>;
}

/** One for all scans that never yield, as no two of those overlap. */
const openContainers = new OpenContainers();

const NO_OPTIONS: ScanOptions = {};

/** Bytes scanned in a quarter of a millisecond; of nothing but brackets and short keys, in two. */
const STRETCH_BYTES = 64 * 1024;

/**
 * Checks that the bytes are one JSON document (RFC 8259, UTF-8, no byte order mark) that can be passed on unaltered, and
 * tells where its parts are.
 *
 * Refused as `malformed`: anything that is not JSON, duplicate keys in one object (also when only escapes tell them apart),
 * lone surrogates, nesting beyond `maxNesting`. A number too large for a double (`1e400`) is JSON and passes: its bytes
 * are kept, and a schema that asks for a number refuses it later.
 *
 * One pass, no recursion, a cost linear in the length.
 */
export function scanJson(bytes: Uint8Array, options: ScanOptions = NO_OPTIONS): JsonNode {
  const scan = new Scan(bytes, options, options.maxNesting ?? MAX_NESTING, openContainers);
  scan.advance(Infinity);
  return scan.finish();
}

/** The same for a document of many megabytes: other work gets in between its stretches. */
export async function scanJsonSlowly(
  bytes: Uint8Array,
  options: ScanOptions,
  pace: Breather,
): Promise<JsonNode> {
  if (!pace.mayGoOn()) await pace.breathe();
  const scan = new Scan(bytes, options, options.maxNesting ?? MAX_NESTING, new OpenContainers());
  while (!scan.advance(STRETCH_BYTES)) if (!pace.mayGoOn()) await pace.breathe();
  return scan.finish();
}
