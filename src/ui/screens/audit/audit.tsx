import type { AuditEntry, ChangedMember } from "../../../domain/audit.ts";
import { NONE } from "../../parts/layout.tsx";
import { type FilterName, List, useParts, useTimeRange } from "../../parts/list.tsx";
import { linkTo, type Route } from "../../parts/route.ts";
import { Empty } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { capital, Time } from "../../parts/values.tsx";

const EVERY_MS = 5_000;

const FILTERS: readonly FilterName[] = [
  { name: "from", example: "1d" },
  { name: "to", example: "2026-02-01" },
];

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: "When", cell: ({ timestamped }) => <Time at={timestamped} exact /> },
  { head: "What", wide: true, cell: ({ change }) => wordsOf(change) },
  { head: "Record", grow: true, cell: (entry) => <RecordCell entry={entry} /> },
  {
    head: "Changed",
    wide: true,
    cell: ({ members }) => (
      <span class="cut-text" title={members.map(changeText).join("\n")}>
        {members.length === 0 ? NONE : members.map(changeText).join(", ")}
      </span>
    ),
  },
  {
    head: "By",
    wide: true,
    cell: ({ by, token_id: token }) => (
      <span class="cut-text" title={token === null ? undefined : `Token ${token}`}>
        {by}
      </span>
    ),
  },
  {
    head: "From",
    wide: true,
    cell: ({ address }) =>
      address === null ? <span class="muted">the data folder</span> : <code>{address}</code>,
  },
];

const empty = (title: string) => (
  <Empty title={title} command="evreg audit">
    Whoever changes actions, subscriptions or tokens, begins a replay, sends a delivery again or gives it up
    is kept here.
  </Empty>
);

/** Who changed what, newest first. */
export function Audit({ route }: { readonly route: Route }) {
  const { from, to } = useTimeRange(route.query);
  const list = useParts<AuditEntry>({
    what: "change",
    path: "/v1/audit",
    query: { from, to },
    route,
    everyMs: EVERY_MS,
  });
  return (
    <List
      filters={FILTERS}
      plain="from"
      of={list}
      columns={COLUMNS}
      keyOf={({ rowid }) => rowid}
      heading={<h1>Audit</h1>}
      empty={empty("Nothing was changed yet")}
      noMatch={empty("No change in this time")}
    />
  );
}

/** `subscription.secret_rotated` as `Subscription: secret rotated`. */
function wordsOf(change: string): string {
  const [record = "", what = ""] = change.split(".");
  return `${capital(record)} ${what.replaceAll("_", " ")}`;
}

/** `active: true → false`; of one whose values are not kept its name. */
function changeText({ member, before, after }: ChangedMember): string {
  if (before === null) return after === null ? `${member} (value not kept)` : `${member}: ${after}`;
  return `${member}: ${before} → ${after ?? "…"}`;
}

/** Narrow screens have no room for the other columns: what was done stands above. */
function RecordCell({ entry }: { readonly entry: AuditEntry }) {
  const { change, members } = entry;
  return (
    <>
      <span class="sub narrow grow">{[wordsOf(change), ...members.map(changeText)].join(", ")}</span>
      <Changed entry={entry} />
    </>
  );
}

/** What was changed, as a link where there is a screen for it. */
function Changed({ entry: { change, name, record_id: id } }: { readonly entry: AuditEntry }) {
  const link = linkOf(change.split(".")[0] ?? "", name, id);
  return link === undefined || change.endsWith(".deleted") || change.endsWith(".revoked") ? (
    <span title={name}>{name}</span>
  ) : (
    <a class="rowlink" href={link} title={name}>
      {name}
    </a>
  );
}

function linkOf(record: string, name: string, id: number | null): string | undefined {
  if (record === "action") return linkTo(["actions", name]);
  if (record === "token") return linkTo(["tokens"]);
  if (id === null) return undefined;
  if (record === "subscription") return linkTo(["subscriptions", id]);
  if (record === "delivery") return linkTo(["deliveries", id]);
  return record === "replay" ? linkTo(["replays", id]) : undefined;
}
