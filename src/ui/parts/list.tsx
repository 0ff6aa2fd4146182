import { type ComponentChildren, Fragment } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Event, PageMeta } from "../../domain/event.ts";
import { pastTime } from "../../domain/formats.ts";
import { type ApiError, type Query, useResource, withQuery } from "../api/resource.ts";
import { EXACT, Wrong } from "./form.tsx";
import { useKeys } from "./keys.ts";
import { Button, Head } from "./layout.tsx";
import { goTo, linkTo, type Route } from "./route.ts";
import { Empty, Failed, Waiting } from "./states.tsx";
import { isScrolled, useStill } from "./still.ts";
import { Table, type TableProps } from "./table.tsx";
import { capital, numberText, Time } from "./values.tsx";

const MANY = {
  action: "actions",
  change: "changes",
  delivery: "deliveries",
  event: "events",
  replay: "replays",
  subscription: "subscriptions",
  token: "tokens",
} as const;

type What = keyof typeof MANY;

/** The rows of a list that are shown, and how one comes to the others. */
export interface Rows<Row> {
  /** One of them. */
  readonly what: What;
  readonly route: Route;
  /** `undefined` until they are read. */
  readonly rows: readonly Row[] | undefined;
  readonly error: ApiError | undefined;
  readonly reload: () => void;
  /** Above the rows: those that wait to be shown. */
  readonly newer?: ComponentChildren;
  /** Beneath them. */
  readonly foot: ComponentChildren;
  /** Whether a search has not looked at all records yet. */
  readonly hasMore?: boolean;
}

/**
 * Records under a filter that stands in the address, each a link to one.
 * @param props.plain the filter that a word alone is
 * @param props.over above the rows, in their panel
 * @param props.instead stands in the place of the rows, such as why there can be none
 * @param props.empty what there is to say where there is none at all
 * @param props.noMatch the same where there is a filter
 */
export function List<Row>(
  props: Omit<TableProps<Row>, "label" | "rows" | "selected"> & {
    readonly filters?: readonly FilterName[];
    readonly plain?: string;
    readonly source: Rows<Row>;
    readonly heading?: ComponentChildren;
    readonly note?: ComponentChildren;
    readonly over?: ComponentChildren;
    readonly instead?: ComponentChildren;
    readonly empty: ComponentChildren;
    readonly noMatch?: ComponentChildren;
    readonly below?: ComponentChildren;
  },
) {
  const { filters = [], plain, source, empty } = props;
  const { rows, what, route } = source;
  const id = recordOf(route);
  const isFiltered = filters.some(({ name }) => route.query[name] !== undefined);
  const noMatch = props.noMatch ?? (
    <Empty
      title={`No ${what} matches`}
      button={<Button to={linkTo(route.path.slice(0, 1))} label="Clear the filter" />}
    >
      None has all of these.
    </Empty>
  );
  const shown = () => {
    if (props.instead) return props.instead;
    if (rows === undefined) return <Waiting source={source} rows={12} />;
    if (rows.length === 0) return isFiltered ? noMatch : empty;
    return (
      <Table
        {...props}
        label={capital(MANY[what])}
        rows={rows}
        selected={id === undefined ? id : Number(id)}
      />
    );
  };
  return (
    <section class="stack list" aria-label={capital(MANY[what])}>
      {props.heading}
      {plain !== undefined && <FilterField what={what} route={route} names={filters} plain={plain} />}
      {props.note}
      {rows !== undefined && <Failed error={source.error} reload={source.reload} />}
      <div class="panel">
        {props.over}
        {source.newer}
        {shown()}
        {source.foot}
      </div>
      {rows !== undefined && rows.length > 0 && props.below}
    </section>
  );
}

/** A list, and beside it the record that the address names. @param props.acts what can be done with the whole list */
export function Split(props: {
  readonly title: string;
  readonly acts?: ComponentChildren;
  readonly route: Route;
  readonly list: ComponentChildren;
  readonly detail: (id: string) => ComponentChildren;
}) {
  const { title, acts, route, list, detail } = props;
  const id = recordOf(route);
  return (
    <div class={id === undefined ? "split" : "split shows-detail"}>
      {id === undefined ? <Head title={title} acts={acts} /> : <h1 class="sr">{title}</h1>}
      {list}
      {id !== undefined && <Fragment key={id}>{detail(id)}</Fragment>}
    </div>
  );
}

/** What the address names of a list. */
const recordOf = ({ path }: Route): string | undefined => path[1];

const READ_ROWS = 50;

/**
 * A list that is read in parts, the newest first, in which nothing that is looked at moves.
 * @param options.path without its query; `undefined` asks nothing
 * @param options.everyMs how often the newest ones are asked for; older ones are not asked for again
 * @param options.isHeld whether something holds the rows where they are, as a record that is looked at does
 * @param options.isSearch whether it looks at records one by one, and says how far it has come
 */
export function useParts<Row extends Pick<Event, "rowid" | "timestamped">>(options: {
  readonly what: What;
  readonly path: string | undefined;
  readonly query: Query;
  readonly route: Route;
  readonly everyMs: number;
  readonly isHeld?: boolean;
  readonly isSearch?: boolean;
}): Rows<Row> {
  const { what, path, query, route, isHeld = false, isSearch = false } = options;
  const { after } = route.query;
  const asked = path === undefined ? undefined : withQuery(path, { limit: READ_ROWS, ...query, after });
  const isNewest = (after ?? query["to"]) === undefined && !isSearch;
  const { answer, error, reload } = useResource<readonly Row[], PageMeta>(asked, {
    everyMs: isNewest ? options.everyMs : undefined,
  });
  const { rows, waiting, showAll } = useStill({
    list: asked ?? "",
    rows: answer?.data,
    keyOf: ({ rowid }) => rowid,
    isRead: isHeld || recordOf(route) !== undefined || isScrolled(),
  });
  const oldest = rows?.at(-1);
  const older = isSearch
    ? answer?.meta?.next
    : rows !== undefined && rows.length >= READ_ROWS
      ? oldest?.rowid
      : undefined;
  const hasMore = older !== undefined && older !== null;
  const link = (from: number | null | undefined): string =>
    linkTo(route.path.slice(0, 1), { ...route.query, after: from });
  useKeys([{ key: "l", what: "Older", run: () => hasMore && goTo(link(older)) }]);
  const searched = answer?.meta?.searched;
  // How far back it reaches, and where it goes on: newest first, older below.
  const foot = (
    <div class="more">
      <span>
        {numberText(rows?.length ?? 0)} shown
        {oldest !== undefined && (
          <>
            , back to <Time at={oldest.timestamped} />
          </>
        )}
        {searched !== undefined && `, ${numberText(searched)} searched`}
      </span>
      <span class="row">
        {after !== undefined && <Button look="bare" to={link(undefined)} label="Newest" />}
        {hasMore && (
          <a class="btn bare" href={link(older)}>
            {searched === undefined ? "Older" : "Search on"} <kbd>L</kbd>
          </a>
        )}
      </span>
    </div>
  );
  return {
    what,
    route,
    rows,
    error,
    reload,
    hasMore,
    newer: <Newer waiting={waiting} read={answer?.data.length} what={what} show={showAll} />,
    foot: (oldest !== undefined || hasMore || after !== undefined) && foot,
  };
}

/**
 * Above a list the rows that wait, without moving those beneath it.
 * @param props.read how many rows were read: where all of them wait, there may be more
 */
function Newer(props: {
  readonly waiting: number;
  readonly read: number | undefined;
  readonly what: What;
  readonly show: () => void;
}) {
  const { waiting, read, what } = props;
  const show = (): void => {
    scrollTo({ top: 0 });
    props.show();
  };
  useKeys([{ key: "n", what: `Show newer ${MANY[what]}`, run: show }]);
  if (waiting === 0) return null;
  return (
    <div class="fresh">
      <button onClick={show}>
        {waiting}
        {waiting === read && " or more"} newer {waiting === 1 ? what : MANY[what]} <kbd>N</kbd>
      </button>
    </div>
  );
}

const SHOWN_ROWS = 100;

/** Shows some rows of a list that comes as a whole, and the foot that leads to the others: by `page` in the address. */
export function partOf<Row>(
  what: What,
  all: readonly Row[] | undefined,
  { error, reload }: Pick<Rows<Row>, "error" | "reload">,
  route: Route,
): Rows<Row> {
  const { path, query } = route;
  const page = Math.max(1, Math.floor(Number(query["page"])) || 1);
  const start = (page - 1) * SHOWN_ROWS;
  const rows = all?.slice(start, start + SHOWN_ROWS);
  if (all === undefined || rows === undefined || all.length <= SHOWN_ROWS) {
    return { what, route, rows, error, reload, foot: null };
  }
  const link = (label: string, other: number) => (
    <Button
      look="bare"
      to={linkTo(path, { ...query, page: other === 1 ? undefined : other })}
      label={label}
    />
  );
  const foot = (
    <div class="more">
      <span>
        {numberText(start + 1)} to {numberText(start + rows.length)} of {numberText(all.length)}
      </span>
      <span class="row">
        {page > 1 && link("Before", page - 1)}
        {page * SHOWN_ROWS < all.length && link("After", page + 1)}
      </span>
    </div>
  );
  return { what, route, rows, error, reload, foot };
}

export interface FilterName {
  readonly name: string;
  /** The placeholder of the field while it is typed: `order.*`. */
  readonly example: string;
  /** What it finds, for one whose name does not say it. Its example then stands in the empty field. */
  readonly hint?: string;
  /** What it is taken for without its name. */
  readonly bare?: RegExp;
  /** What can be given; anything where it is left out. */
  readonly values?: readonly string[];
  /** What is offered, where anything can be given. */
  readonly offers?: readonly string[];
  /** What a tag says for a value, where that is a number that people have a name for. */
  readonly shown?: (value: string) => string;
}

/** A list's filters, as they stand in the address: a tag for each. Typed as `action order.*` or `action:order.*`. */
function FilterField(props: {
  readonly what: What;
  readonly route: Route;
  readonly names: readonly FilterName[];
  /** What a word alone is: a list's usual filter. */
  readonly plain: string;
}) {
  const { names, route } = props;
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  useKeys([{ key: "/", what: "Filter", run: () => input.current?.focus() }]);

  const filled = names.filter(({ name }) => route.query[name] !== undefined);
  const change = (name: string, value: string | undefined): void =>
    goTo(linkTo(route.path.slice(0, 1), { ...route.query, after: undefined, [name]: value }));
  const add = (): void => {
    const typed = text.trim();
    if (typed === "") return;
    const [, first = "", rest = ""] = /^([a-z_]+)[\s:=]+(.+)$/s.exec(typed) ?? [];
    const known = names.find(({ name }) => name === first);
    const value = known === undefined ? typed : rest.trim();
    const name = (known ?? names.find(({ bare }) => bare?.test(typed)))?.name ?? props.plain;
    if (known?.values !== undefined && !known.values.includes(value)) {
      setWrong(`${name} is one of ${known.values.join(", ")}.`);
      return;
    }
    setText("");
    setWrong("");
    change(name, value);
  };
  const example = names.find(({ name }) => text.startsWith(`${name} `) || text.startsWith(`${name}:`));
  return (
    <div>
      <div class="field">
        {filled.map(({ name, shown }) => (
          <span class="tag" key={name}>
            <b>{name}</b> <span class="value">{shown?.(route.query[name] ?? "") ?? route.query[name]}</span>
            <button aria-label={`Remove the filter ${name}`} onClick={() => change(name, undefined)}>
              ×
            </button>
          </span>
        ))}
        <input
          ref={input}
          value={text}
          aria-label={`Filter ${MANY[props.what]}`}
          aria-invalid={wrong !== ""}
          list="filters"
          {...EXACT}
          placeholder={`${names.map(({ name, hint, example: one }) => (hint === undefined ? name : `${name} ${one}`)).join(", ")}…`}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") add();
            else if (event.key === "Escape") event.currentTarget.blur();
            else if (event.key === "Backspace" && text === "") change(filled.at(-1)?.name ?? "", undefined);
          }}
        />
        <datalist id="filters">
          {(example?.values ?? example?.offers ?? []).map((value) => (
            <option key={value} value={`${example?.name} ${value}`} />
          ))}
          {example === undefined &&
            names.map(({ name, example: one, hint }) => (
              <option key={name} value={`${name} ${one}`} label={hint} />
            ))}
        </datalist>
        <kbd>/</kbd>
      </div>
      <Wrong text={wrong} />
    </div>
  );
}

/**
 * The times of a list's filter as the API takes them. A time such as `1h` ago stays where it was when it was asked for, so
 * that a list that is read again keeps its beginning.
 */
export function useTimeRange(query: Readonly<Record<string, string>>): {
  readonly from: string | undefined;
  readonly to: string | undefined;
} {
  const { from, to } = query;
  return useMemo(() => {
    const now = Date.now();
    return { from: from && pastTime(from, now), to: to && pastTime(to, now) };
  }, [from, to]);
}
