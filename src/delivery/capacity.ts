import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import type { DeliveryConfig } from "../config/config.ts";

/** What an attempt under way takes over TLS, mostly for its connection; without TLS it is a tenth. */
const ATTEMPT_BYTES = 128 * 1_024;
/** Of the memory and the descriptors there are, as much may be for attempts. */
const MEMORY_PART = 1 / 4;
const DESCRIPTOR_PART = 1 / 2;
/** Files, the threads' own, and what else is open at all times. */
const OTHER_DESCRIPTORS = 64;

/** What this process may have. */
export interface Means {
  readonly memoryBytes: number;
  /** `undefined` where the system does not tell. */
  readonly descriptors: number | undefined;
}

/** Most attempts under way. */
export interface Capacity {
  readonly inFlight: number;
  readonly perSubscription: number;
  /** What keeps it below what is configured. */
  readonly boundBy: "memory" | "descriptors" | undefined;
}

/** As configured, or what memory and file descriptors allow: with too many, attempts would fail for want of a socket. */
export function capacityOf(
  {
    maxInFlight,
    maxInFlightPerSubscription,
  }: Pick<DeliveryConfig, "maxInFlight" | "maxInFlightPerSubscription">,
  { memoryBytes, descriptors }: Means,
): Capacity {
  const byMemory = Math.max(1, Math.floor((memoryBytes * MEMORY_PART) / ATTEMPT_BYTES));
  const byDescriptors =
    descriptors === undefined
      ? Infinity
      : Math.max(1, Math.floor((descriptors - OTHER_DESCRIPTORS) * DESCRIPTOR_PART));
  const allowed = Math.min(byMemory, byDescriptors);
  if (maxInFlight <= allowed) {
    return { inFlight: maxInFlight, perSubscription: maxInFlightPerSubscription, boundBy: undefined };
  }
  return {
    inFlight: allowed,
    // As without a setting: none can take all.
    perSubscription: Math.min(maxInFlightPerSubscription, Math.max(1, Math.floor(allowed / 2))),
    boundBy: byMemory <= byDescriptors ? "memory" : "descriptors",
  };
}

/** Of a container, where its limits are below the machine's. Node has raised the number of descriptors as far as it may. */
export function ownMeans(): Means {
  const constrained = process.constrainedMemory();
  return {
    memoryBytes: Math.min(totalmem(), constrained > 0 ? constrained : Infinity),
    descriptors: openFilesLimit(),
  };
}

function openFilesLimit(): number | undefined {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}
