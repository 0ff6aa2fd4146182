import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import type { DeliveryConfig } from "../config/keys.ts";

/** Memory of an attempt in flight over TLS, mostly for its connection; without TLS it is a tenth. */
const ATTEMPT_BYTES = 128 * 1_024;
/** The parts of the memory and of the descriptors that attempts may use. */
const MEMORY_PART = 1 / 4;
const DESCRIPTOR_PART = 1 / 2;
/** Descriptors of files and threads. */
const OTHER_DESCRIPTORS = 64;

/**
 * The configured limits, or what memory and file descriptors allow: with too many, attempts would fail for want of a
 * socket.
 */
export function capacityOf(
  {
    maxInFlight,
    maxInFlightPerSubscription,
  }: Pick<DeliveryConfig, "maxInFlight" | "maxInFlightPerSubscription">,
  { memoryBytes, descriptors }: ReturnType<typeof processLimits>,
) {
  const byMemory = (memoryBytes * MEMORY_PART) / ATTEMPT_BYTES;
  const byDescriptors = (descriptors - OTHER_DESCRIPTORS) * DESCRIPTOR_PART;
  const inFlight = Math.max(1, Math.floor(Math.min(maxInFlight, byMemory, byDescriptors)));
  // No subscription can take all.
  const perSubscription = Math.min(maxInFlightPerSubscription, Math.max(1, Math.floor(inFlight / 2)));
  return { inFlight, perSubscription };
}

/**
 * What this process may use: of a container, where its limits are below the machine's. Node has raised the number of descriptors as
 * far as it may; it is `Infinity` where the system does not report it.
 */
export function processLimits() {
  const constrained = process.constrainedMemory();
  return {
    memoryBytes: Math.min(totalmem(), constrained > 0 ? constrained : Infinity),
    descriptors: openFilesLimit(),
  };
}

function openFilesLimit(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "latin1");
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}
