import type { ComponentChildren, TargetedMouseEvent } from "preact";
import { useRef } from "preact/hooks";
import { useKeys } from "./keys.ts";
import { goTo } from "./route.ts";

export interface Column<Row> {
  /** Unique among the columns. */
  readonly head: string;
  /** Shown instead of it. */
  readonly top?: ComponentChildren;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers: aligned to the right. */
  readonly right?: boolean;
  /** The one that takes the room that is left, and is cut where there is none. */
  readonly grow?: boolean;
  /** The column is not shown on narrow screens. */
  readonly wide?: boolean;
  /** Nor beside a record. */
  readonly alone?: boolean;
  /** The order in which rows are sorted by it; they are not sorted by it where it is left out. */
  readonly sort?: "ascending" | "descending";
}

export interface TableProps<Row> {
  /** What the rows are, for those who hear the page. */
  readonly label: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string | number;
  /** Where a row leads; its first growing column is the link. */
  readonly link?: (row: Row) => string;
  /** The key of the row whose record is shown beside. */
  readonly selected?: string | number | undefined;
  /** The head of the column that the rows are sorted by. */
  readonly sorted?: string;
  readonly sortBy?: (head: string) => void;
}

/** Rows of records, each a link to one. `J` and `K` go from row to row, `Enter` opens. */
export function Table<Row>(props: TableProps<Row>) {
  const { rows, keyOf, link, selected } = props;
  const columns = props.columns.filter(({ alone }) => alone !== true || selected === undefined);
  const table = useRef<HTMLTableElement>(null);
  const go = (by: 1 | -1): void => {
    const links = [...(table.current?.querySelectorAll<HTMLAnchorElement>("a.rowlink") ?? [])];
    const at = links.findIndex((element) => element === document.activeElement);
    const from =
      at === -1 ? links.findIndex((element) => element.closest("[aria-selected=true]") !== null) : at;
    const next = links[from === -1 ? (by === 1 ? 0 : links.length - 1) : from + by];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    if (next !== undefined && selected !== undefined)
      goTo(next.getAttribute("href") ?? "", { replace: true });
  };
  useKeys(
    link === undefined
      ? []
      : [
          { key: "j", what: "Next", run: () => go(1) },
          { key: "k", what: "Previous", run: () => go(-1) },
        ],
  );
  const linked = Math.max(
    0,
    columns.findIndex(({ grow }) => grow),
  );
  const classOf = ({ right, grow, wide }: Column<Row>): string =>
    [right === true && "r", grow === true && "grow", wide === true && "hide-s"].filter(Boolean).join(" ");
  return (
    <div class="scroll" tabIndex={link === undefined ? 0 : undefined}>
      <table ref={table} aria-label={props.label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.head}
                scope="col"
                class={classOf(column)}
                aria-sort={column.head === props.sorted ? column.sort : undefined}
              >
                {column.sort === undefined ? (
                  (column.top ?? column.head)
                ) : (
                  <button class="sort" onClick={() => props.sortBy?.(column.head)}>
                    {column.top ?? column.head}
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const key = keyOf(row);
            const href = link?.(row);
            return (
              <tr
                key={key}
                class={href === undefined ? "" : "linked"}
                aria-selected={selected === undefined ? undefined : key === selected}
                onClick={href === undefined ? undefined : (event) => openRow(event, href)}
              >
                {columns.map((column, index) => (
                  <td key={column.head} class={classOf(column)}>
                    {href !== undefined && index === linked ? (
                      <a class="rowlink" href={href}>
                        {column.cell(row)}
                      </a>
                    ) : (
                      column.cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A click beside a link or button of the row opens it too; one that selects text does not. */
function openRow(event: TargetedMouseEvent<HTMLTableRowElement>, href: string): void {
  const { target } = event;
  if (!(target instanceof Element) || target.closest("a, button, input, label") !== null) return;
  if (getSelection()?.isCollapsed === false) return;
  if (event.metaKey || event.ctrlKey) open(href, "_blank", "noopener");
  else goTo(href);
}
