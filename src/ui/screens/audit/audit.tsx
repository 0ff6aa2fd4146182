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
      source={list}
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

/** The screens of records, by what a change is of. */
const SCREENS: Readonly<Record<string, string>> = {
  action: "actions",
  delivery: "deliveries",
  replay: "replays",
  subscription: "subscriptions",
  token: "tokens",
};

/** The address of what was changed; `undefined` where it has none, or is gone. */
function linkOf({ change, name, record_id: id }: AuditEntry): string | undefined {
  const [record = "", what = ""] = change.split(".");
  const screen = SCREENS[record];
  if (screen === undefined || what === "deleted" || what === "revoked") return undefined;
  if (record === "token") return linkTo([screen]);
  const key = record === "action" ? name : id;
  return key === null ? undefined : linkTo([screen, key]);
}

/** What was changed. Narrow screens have no room for the other columns: what was done stands above. */
function RecordCell({ entry }: { readonly entry: AuditEntry }) {
  const { change, name, members } = entry;
  const link = linkOf(entry);
  return (
    <>
      <span class="sub narrow grow">{[wordsOf(change), ...members.map(changeText)].join(", ")}</span>
      {link === undefined ? (
        <span title={name}>{name}</span>
      ) : (
        <a class="rowlink" href={link} title={name}>
          {name}
        </a>
      )}
    </>
  );
}
