import type { ANSWERS } from "../model/answers.ts";
import type { Fields } from "../model/field.ts";
import { from, inputSchema, pageLimit, rowid, to, type ValueOf } from "./request.ts";

/** Who makes a change. */
export interface Actor {
  /** The name of the token; `local` for a command on the data folder itself, and where a server asks for no token. */
  readonly name: string;
  /** `null` where there was no token. */
  readonly tokenId: number | null;
  /** The address that the request came from; `null` for a command on the data folder. */
  readonly address: string | null;
}

/** A command that holds the data folder itself. */
export const LOCAL_ACTOR: Actor = { name: "local", tokenId: null, address: null };

export type AuditedChange = AuditEntry["change"];

/** One change, as it was made. */
export interface AuditEntry extends ValueOf<(typeof ANSWERS)["AuditEntry"]> {}

/** One member of a record that a change gave another value. */
export type ChangedMember = AuditEntry["members"][number];

export const AUDIT_LIMITS = { listDefault: 50, listMax: 500 } as const;

export const AUDIT_QUERY = inputSchema("AuditQuery", {
  from: { ...from, description: "Changed then or later." },
  to: { ...to, description: "Changed before then." },
  limit: pageLimit(AUDIT_LIMITS, "Changes in one answer."),
  after: { ...rowid, description: "Walks on to changes older than this rowid." },
});
export type AuditQuery = ValueOf<typeof AUDIT_QUERY>;

/** Members whose texts are shown beside those that list their words. Others may hold credentials: handlers, headers, filters. */
const NAMES = new Set(["action", "application", "successor"]);

/** The members of a record that have another value after a change, of those that somebody sets. */
export function changedMembers(fields: Fields, before: object, after: object): readonly ChangedMember[] {
  const old = before as Readonly<Record<string, unknown>>;
  return Object.entries(after).flatMap(([member, value]) => {
    const { [member]: field } = fields;
    if (field?.change === undefined || JSON.stringify(old[member]) === JSON.stringify(value)) return [];
    const isShown = NAMES.has(member) || "enum" in field.change;
    return [{ member, before: shownValue(old[member], isShown), after: shownValue(value, isShown) }];
  });
}

function shownValue(value: unknown, isShownText: boolean): ChangedMember["before"] {
  if (typeof value === "number" || typeof value === "boolean") return value;
  return typeof value === "string" && isShownText ? value : null;
}
