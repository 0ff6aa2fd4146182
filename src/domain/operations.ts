import type { ANSWERS } from "../model/answers.ts";
import type { META } from "../model/meta.ts";
import { byApplication, inputSchema, pageLimit, type ValueOf } from "./request.ts";

type Answers = typeof ANSWERS;

export interface Health extends ValueOf<Answers["Health"]> {}

/** The result of one check. */
export interface Finding extends ValueOf<Answers["Finding"]> {}

export interface FindingsMeta extends ValueOf<(typeof META)["findings"]> {}

export function fine(check: string, found: string): Finding {
  return { check, status: "ok", found, remedy: null };
}

export function warning(check: string, found: string, remedy: string): Finding {
  return { check, status: "warning", found, remedy };
}

export function problem(check: string, found: string, remedy: string): Finding {
  return { check, status: "problem", found, remedy };
}

/**
 * A copy of all that is stored, as it was at one moment after the request. It is a data file, with its secrets as they are
 * stored, encrypted or not.
 */
export interface Backup {
  readonly bytes: number;
  /** The SHA-256 of the bytes, in hex. */
  readonly sha256: string;
  /** The bytes, which can be read once. It fails when they are not those that were copied. */
  content(): AsyncIterable<Uint8Array>;
  /** Needed also after its content was read. Safe to call twice. */
  close(): Promise<void>;
}

export type AttentionReason = Attention["reason"];

/** Something that needs a person. A subscription has one for its state at most, and one more for what failed. */
export interface Attention extends ValueOf<Answers["Attention"]> {}

/** A process that has the data open. */
export interface Node extends ValueOf<Answers["Node"]> {}

export interface NodesMeta extends ValueOf<(typeof META)["nodes"]> {}

export interface AttentionMeta extends ValueOf<(typeof META)["attention"]> {}

export const ATTENTION_LIMITS = { listDefault: 100, listMax: 500 } as const;

export const ATTENTION_QUERY = inputSchema("AttentionQuery", {
  application: byApplication,
  limit: pageLimit(ATTENTION_LIMITS, "Entries in the answer."),
});
export type AttentionQuery = ValueOf<typeof ATTENTION_QUERY>;
