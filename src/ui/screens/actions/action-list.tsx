import { useMemo } from "preact/hooks";
import type { Action } from "../../../domain/action.ts";
import type { ActionFigures, Stats } from "../../../domain/stats/stats.ts";
import { identity } from "../../api/identity.ts";
import { useResource } from "../../api/resource.ts";
import { FilterField, type FilterName } from "../../parts/filter-field.tsx";
import { Empty, Failed, Waiting } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { numberText, Time } from "../../parts/time.tsx";
import { linkTo, type Route } from "../../shell/route.ts";
import { ActionWord, stateOf } from "./action-state.tsx";

const FILTERS: readonly FilterName[] = [
  { name: "name", example: "order" },
  { name: "application", example: "billing" },
  { name: "state", example: "deprecated", values: ["active", "deprecated", "retired"] },
];
const PAGE_ROWS = 100;
const STATS_PATH = "/v1/stats?range=1h&by=action&limit=1000";
const STATS_EVERY_MS = 10_000;

/** What is known of an action's last hour; `undefined` while nothing is. */
type FiguresOf = (action: string) => ActionFigures | undefined;

const columns = (figuresOf: FiguresOf): readonly Column<Action>[] => [
  { head: "Action", grow: true, cell: ({ action }) => <span title={action}>{action}</span> },
  {
    head: "Application",
    wide: true,
    cell: ({ application }) => <span class="cut-text soft">{application}</span>,
  },
  { head: "State", cell: (action) => <ActionWord action={action} /> },
  {
    head: "Protects",
    wide: true,
    cell: ({ compatibility, compatibility_against: against }) => (
      <span class="soft">
        {compatibility}
        {against === "all" && ", against all"}
      </span>
    ),
  },
  { head: "Revision", right: true, wide: true, cell: ({ revision }) => revision },
  {
    head: "Last hour",
    right: true,
    cell: ({ action }) => {
      if (action.startsWith("evreg.")) {
        return (
          <span class="muted" title="Events that evreg makes itself are stored, and not counted as published">
            not counted
          </span>
        );
      }
      const count = figuresOf(action)?.published;
      return count === undefined || count === 0 ? <span class="muted">–</span> : numberText(count);
    },
  },
  {
    head: "Last published",
    right: true,
    wide: true,
    cell: ({ action }) => <Time at={figuresOf(action)?.last_published_at ?? null} />,
  },
];

const mayCreate = (): boolean =>
  (identity.value?.scopes ?? []).some((scope) => /^(write|admin)(:|$)/.test(scope));

function matches(action: Action, query: Route["query"]): boolean {
  const { name, application, state } = query;
  if (application !== undefined && action.application !== application) return false;
  if (state !== undefined && stateOf(action) !== state) return false;
  return name === undefined || action.action.toLowerCase().includes(name.toLowerCase());
}

/** All actions by name. */
export function ActionList({ route }: { readonly route: Route }) {
  const { answer, error, reload } = useResource<readonly Action[]>("/v1/actions");
  const stats = useResource<Stats>(STATS_PATH, { everyMs: STATS_EVERY_MS });
  const rowsOfActions = stats.answer?.data.rows as readonly ActionFigures[] | undefined;
  const figuresOf = useMemo((): FiguresOf => {
    const byName = new Map(rowsOfActions?.map((row) => [row.action, row]));
    return (action) => byName.get(action);
  }, [rowsOfActions]);
  const found = answer?.data.filter((action) => matches(action, route.query));
  const page = Math.max(1, Number(route.query["page"] ?? 1) || 1);
  const rows = found?.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS);
  const isFiltered = FILTERS.some(({ name }) => route.query[name] !== undefined);
  return (
    <section class="stack" aria-label="Actions">
      <header class="head">
        <h1 class="what">Actions</h1>
        {mayCreate() && (
          <div class="acts">
            <a class="btn main" href={linkTo(["actions"], { create: "one" })}>
              Create an action
            </a>
          </div>
        )}
      </header>
      <FilterField label="Filter actions" path={["actions"]} route={route} names={FILTERS} plain="name" />
      {error !== undefined && rows !== undefined && <Failed error={error} reload={reload} />}
      <div class="panel">
        {rows === undefined ? (
          <Waiting error={error} reload={reload} rows={12} />
        ) : rows.length === 0 ? (
          <NoActions isFiltered={isFiltered} />
        ) : (
          <Table
            label="Actions"
            rows={rows}
            columns={columns(figuresOf)}
            keyOf={({ action }) => action}
            link={({ action }) => linkTo(["actions", action])}
          />
        )}
        {found !== undefined && found.length > PAGE_ROWS && (
          <div class="more">
            <span>
              {numberText((page - 1) * PAGE_ROWS + 1)} to{" "}
              {numberText((page - 1) * PAGE_ROWS + (rows?.length ?? 0))} of {numberText(found.length)}
            </span>
            <span class="row">
              {page > 1 && (
                <a class="btn bare" href={linkTo(["actions"], { ...route.query, page: page - 1 })}>
                  Before
                </a>
              )}
              {page * PAGE_ROWS < found.length && (
                <a class="btn bare" href={linkTo(["actions"], { ...route.query, page: page + 1 })}>
                  After
                </a>
              )}
            </span>
          </div>
        )}
      </div>
    </section>
  );
}

function NoActions({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty
        title="No action matches"
        button={
          <a class="btn" href="#/actions">
            Clear the filter
          </a>
        }
      >
        None has all of these.
      </Empty>
    );
  }
  return (
    <Empty
      title="No action yet"
      command="evreg actions create user.created --application accounts --schema user.json"
    >
      An action is a kind of event: its name, the application that owns it, and the schema of its payloads.
    </Empty>
  );
}
