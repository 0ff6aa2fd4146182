import type { ComponentChildren } from "preact";
import { useKeys } from "../shell/keys.ts";
import { goTo, linkTo, type Route } from "../shell/route.ts";
import { numberText, Time } from "./time.tsx";

/**
 * The foot of a list: how far back it reaches, and where it goes on. Newest first, older below.
 * @param props.searched how many records a search has looked at
 */
export function Pages(props: {
  readonly shown: number;
  readonly oldest: string | undefined;
  readonly searched?: number | undefined;
  readonly newest: string | undefined;
  readonly older: string | undefined;
}) {
  const { shown, oldest, searched, newest, older } = props;
  useKeys([
    {
      key: "l",
      what: "Older",
      run: () => {
        if (older !== undefined) goTo(older);
      },
    },
  ]);
  if (shown === 0 && older === undefined && newest === undefined) return null;
  return (
    <div class="more">
      <span>
        {numberText(shown)} shown
        {oldest !== undefined && (
          <>
            , back to <Time at={oldest} />
          </>
        )}
        {searched !== undefined && `, ${numberText(searched)} searched`}
      </span>
      <span class="row">
        {newest !== undefined && (
          <a class="btn bare" href={newest}>
            Newest
          </a>
        )}
        {older !== undefined && (
          <a class="btn bare" href={older}>
            {searched === undefined ? "Older" : "Search on"} <kbd>L</kbd>
          </a>
        )}
      </span>
    </div>
  );
}

const MANY = { event: "events", delivery: "deliveries", change: "changes", replay: "replays" } as const;

/**
 * Above a list the rows that wait, without moving those beneath it.
 * @param props.read how many rows were read: where all of them wait, there may be more
 */
export function Newer(props: {
  readonly waiting: number;
  readonly read: number | undefined;
  readonly what: keyof typeof MANY;
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

const PAGE_ROWS = 100;

/** Of a list that comes as a whole the rows that are shown, and the foot that leads to the others: by `page` in the address. */
export function pageOf<Row>(
  all: readonly Row[] | undefined,
  { path, query }: Route,
): { readonly rows: readonly Row[] | undefined; readonly foot: ComponentChildren } {
  const page = Math.max(1, Math.floor(Number(query["page"])) || 1);
  const start = (page - 1) * PAGE_ROWS;
  const rows = all?.slice(start, start + PAGE_ROWS);
  if (all === undefined || all.length <= PAGE_ROWS) return { rows, foot: null };
  const link = (text: string, other: number) => (
    <a class="btn bare" href={linkTo(path, { ...query, page: other === 1 ? undefined : other })}>
      {text}
    </a>
  );
  const foot = (
    <div class="more">
      <span>
        {numberText(start + 1)} to {numberText(start + rows!.length)} of {numberText(all.length)}
      </span>
      <span class="row">
        {page > 1 && link("Before", page - 1)}
        {page * PAGE_ROWS < all.length && link("After", page + 1)}
      </span>
    </div>
  );
  return { rows, foot };
}
