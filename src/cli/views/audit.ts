import { type Column, ID_COLUMN } from "../io/table.ts";
import type { AuditEntry, ChangedMember } from "../../domain/audit.ts";
import type { ListView } from "./view.ts";

const LIST: readonly Column<AuditEntry>[] = [
  { ...ID_COLUMN, value: ({ rowid }) => rowid },
  { title: "AT", value: ({ timestamped }) => timestamped, time: true },
  { title: "BY", value: ({ by }) => by, shrinkTo: 8 },
  { title: "FROM", value: ({ address }) => address ?? undefined, dropOrder: 1 },
  { title: "CHANGE", value: ({ change }) => change },
  { title: "WHAT", value: whatOf, shrinkTo: 12, keepWhole: true },
  { title: "MEMBERS", value: ({ members }) => members.map(memberText).join(", "), shrinkTo: 10 },
];

export const CHANGES = {
  noun: "change",
  plural: "changes",
  command: "audit",
  list: LIST,
  none: () => "No change was kept yet.",
} satisfies ListView<AuditEntry>;

function whatOf({ record_id: id, name }: AuditEntry): string {
  return id === null ? name : `${id} ${name}`;
}

function memberText({ member, before, after }: ChangedMember): string {
  if (before === null && after === null) return member;
  return before === null ? `${member}: ${after}` : `${member} ${before} → ${after ?? "none"}`;
}
