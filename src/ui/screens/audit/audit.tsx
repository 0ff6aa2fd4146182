import type { AuditEntry, ChangedMember } from "../../../domain/audit.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { FilterField, type FilterName } from "../../parts/filter-field.tsx";
import { Newer, Pages } from "../../parts/pages.tsx";
import { Empty, Failed, Waiting } from "../../parts/states.tsx";
import { isScrolled, useStill } from "../../parts/still.ts";
import { type Column, Table } from "../../parts/table.tsx";
import { useTimeRange } from "../../parts/list-filters.ts";
import { Time } from "../../parts/time.tsx";
import { linkTo, type Route } from "../../shell/route.ts";

const PAGE_ROWS = 50;
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
        {members.length === 0 ? <span class="muted">–</span> : members.map(changeText).join(", ")}
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

/** Who changed what, newest first. */
export function Audit({ route }: { readonly route: Route }) {
  const { after } = route.query;
  const { from, to } = useTimeRange(route.query);
  const path = withQuery("/v1/audit", { limit: PAGE_ROWS, from, to, after });
  const isNewest = after === undefined && to === undefined;
  const list = useResource<readonly AuditEntry[]>(path, isNewest ? { everyMs: EVERY_MS } : {});
  const { rows, waiting, showAll } = useStill({
    list: path,
    rows: list.answer?.data,
    keyOf: ({ rowid }) => rowid,
    isRead: isScrolled(),
  });
  const oldest = rows?.at(-1);
  const older = rows !== undefined && rows.length >= PAGE_ROWS ? oldest?.rowid : undefined;
  return (
    <section class="stack list" aria-label="Audit">
      <h1>Audit</h1>
      <FilterField label="Filter changes" path={["audit"]} route={route} names={FILTERS} plain="from" />
      {list.error !== undefined && rows !== undefined && <Failed error={list.error} reload={list.reload} />}
      <div class="panel">
        <Newer waiting={waiting} read={list.answer?.data.length} what="change" show={showAll} />
        {rows === undefined ? (
          <Waiting error={list.error} reload={list.reload} rows={12} />
        ) : rows.length === 0 ? (
          <Empty
            title={
              from === undefined && to === undefined ? "Nothing was changed yet" : "No change in this time"
            }
            command="evreg audit"
          >
            Whoever changes actions, subscriptions or tokens, begins a replay, sends a delivery again or gives
            it up is kept here.
          </Empty>
        ) : (
          <Table label="Changes" rows={rows} columns={COLUMNS} keyOf={({ rowid }) => rowid} />
        )}
        <Pages
          shown={rows?.length ?? 0}
          oldest={oldest?.timestamped}
          newest={after === undefined ? undefined : linkTo(["audit"], { ...route.query, after: undefined })}
          older={older === undefined ? undefined : linkTo(["audit"], { ...route.query, after: older })}
        />
      </div>
    </section>
  );
}

/** `subscription.secret_rotated` as `Subscription: secret rotated`. */
function wordsOf(change: string): string {
  const [record = "", what = ""] = change.split(".");
  return `${(record[0] ?? "").toUpperCase()}${record.slice(1)} ${what.replaceAll("_", " ")}`;
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
