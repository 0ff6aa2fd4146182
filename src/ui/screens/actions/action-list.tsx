import { useMemo } from "preact/hooks";
import { type Action, actionState } from "../../../domain/action.ts";
import { isReservedName } from "../../../domain/names.ts";
import type { ActionFigures, Stats } from "../../../domain/stats/stats.ts";
import { useResource } from "../../api/resource.ts";
import { maySome } from "../../api/session.ts";
import { Button, Head, NONE } from "../../parts/layout.tsx";
import { type FilterName, List, partOf } from "../../parts/list.tsx";
import { goTo, linkTo, type Route } from "../../parts/route.ts";
import { Empty } from "../../parts/states.tsx";
import type { Column } from "../../parts/table.tsx";
import { numberText, Time } from "../../parts/values.tsx";
import { ActionState } from "./action-parts.tsx";

const FILTERS: readonly FilterName[] = [
  { name: "name", example: "order" },
  { name: "application", example: "billing" },
  { name: "state", example: "deprecated", values: ["active", "deprecated", "retired"] },
];
const BY_NAME = "Action";
const STATS_PATH = "/v1/stats?range=24h&by=action&limit=1000";
const STATS_EVERY_MS = 30_000;

/** What is known of an action's last day; `undefined` while nothing is. */
type FiguresOf = (action: string) => ActionFigures | undefined;

const columns = (figuresOf: FiguresOf): readonly Column<Action>[] => [
  {
    head: "Action",
    grow: true,
    sort: "ascending",
    cell: ({ action }) => <span title={action}>{action}</span>,
  },
  {
    head: "Application",
    wide: true,
    cell: ({ application }) => <span class="cut-text soft">{application}</span>,
  },
  { head: "State", wide: true, cell: (action) => <ActionState record={action} look="st" /> },
  {
    head: "Protects",
    wide: true,
    cell: ({ compatibility }) => <span class="soft">{compatibility}</span>,
  },
  { head: "Revision", right: true, wide: true, cell: ({ revision }) => revision },
  {
    head: "Published 24 h",
    // Narrow screens have no room to say of when.
    top: (
      <>
        Published<span class="hide-s"> 24 h</span>
      </>
    ),
    right: true,
    sort: "descending",
    cell: ({ action }) =>
      isReservedName(action) ? (
        <span class="muted" title="Events that evreg makes itself are stored, and not counted as published">
          –
        </span>
      ) : (
        countOf(figuresOf(action)?.published)
      ),
  },
  {
    head: "Last published",
    right: true,
    wide: true,
    sort: "descending",
    cell: ({ action }) => <Time at={figuresOf(action)?.last_published_at ?? null} />,
  },
];

const countOf = (count = 0) => (count === 0 ? NONE : numberText(count));

/** What comes first by the column of that head; by name where they are alike. */
function worthOf(head: string, figures: ActionFigures | undefined): number {
  if (head === "Last published") return Date.parse(figures?.last_published_at ?? "") || 0;
  return figures?.published ?? 0;
}

function matches(action: Action, query: Route["query"]): boolean {
  const { name, application, state } = query;
  if (application !== undefined && action.application !== application) return false;
  if (state !== undefined && actionState(action) !== state) return false;
  return name === undefined || action.action.toLowerCase().includes(name.toLowerCase());
}

/** All actions by name. */
export function ActionList({ route }: { readonly route: Route }) {
  const list = useResource<readonly Action[]>("/v1/actions");
  const stats = useResource<Stats>(STATS_PATH, { everyMs: STATS_EVERY_MS });
  const rowsOfActions = stats.answer?.data.rows as readonly ActionFigures[] | undefined;
  const figuresOf = useMemo((): FiguresOf => {
    const byName = new Map(rowsOfActions?.map((row) => [row.action, row]));
    return (action) => byName.get(action);
  }, [rowsOfActions]);
  const shown = columns(figuresOf);
  const sorted =
    shown.find(({ sort, head }) => sort !== undefined && head === route.query["sort"])?.head ?? BY_NAME;
  const all = list.answer?.data.filter((action) => matches(action, route.query));
  const worth = ({ action }: Action): number => worthOf(sorted, figuresOf(action));
  const sortedActions = sorted === BY_NAME ? all : all?.toSorted((one, other) => worth(other) - worth(one));
  const isFiltered = FILTERS.some(({ name }) => route.query[name] !== undefined);
  const none = (
    <Empty
      title="No action of your own yet"
      command="evreg actions create user.created --application accounts --schema user.json"
    >
      An action is a kind of event: its name, the application that owns it, and the schema of its payloads.
    </Empty>
  );
  const create = <Button look="main" to={linkTo(["actions"], { create: "one" })} label="Create an action" />;
  const sortBy = (head: string): void =>
    goTo(linkTo(["actions"], { ...route.query, page: undefined, sort: head === BY_NAME ? undefined : head }));
  return (
    <List
      filters={FILTERS}
      plain="name"
      source={partOf("action", sortedActions, list, route)}
      columns={shown}
      sorted={sorted}
      sortBy={sortBy}
      keyOf={({ action }) => action}
      link={({ action }) => linkTo(["actions", action])}
      heading={<Head title="Actions" acts={maySome("write") && create} />}
      over={
        sortedActions !== undefined &&
        sortedActions.length > 0 &&
        !isFiltered &&
        sortedActions.every(({ action }) => isReservedName(action)) &&
        none
      }
      empty={none}
      noMatch={
        <Empty title="No action matches" button={<Button to="#/actions" label="Clear the filter" />} />
      }
    />
  );
}
