import { useReducer, useRef } from "preact/hooks";

/**
 * Whether the pointer or the focus is in it. A screen that is touched tells of no finger before it is pressed: there it may
 * be anywhere.
 * @param place a selector
 */
const isHeld = (place: string): boolean =>
  matchMedia("(hover: none)").matches ||
  document.querySelector(`${place}:is(:hover, :focus-within)`) !== null;

/** Whether somebody has gone down a list that grows at its top. */
export const isScrolled = (): boolean => scrollY >= 8;

export interface StillRows<Row> {
  readonly rows: readonly Row[] | undefined;
  /** How many rows wait. */
  readonly waiting: number;
  /** Shows them. */
  readonly showAll: () => void;
}

const LIST = ".list > .panel";

/**
 * A live list in which nothing moves while the pointer or the focus is in it: rows that are shown are brought up to date
 * where they stand, those that went stay, and new ones wait until they are asked for or nobody is there.
 * @param options.list another list, such as of another filter, begins anew
 * @param options.place a selector of what must be left before anything moves; the list itself, where nothing else is named
 * @param options.isRead whether something else holds it, such as a record of it that is looked at
 * @param options.holdsFirst whether a row waits also where there was none, as it moves what is beneath the list
 */
export function useStill<Row>(options: {
  readonly list: string;
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => number;
  readonly place?: string;
  readonly isRead?: boolean;
  readonly holdsFirst?: boolean;
}): StillRows<Row> {
  const { list, rows, keyOf, place = LIST, isRead = false, holdsFirst = false } = options;
  const [, draw] = useReducer((round: number) => round + 1, 0);
  const shown = useRef<{ readonly list: string; readonly rows: readonly Row[] } | undefined>(undefined);
  const before = shown.current?.list === list ? shown.current.rows : undefined;
  const showAll = (): void => {
    shown.current = undefined;
    draw(0);
  };
  if (rows === undefined) return { rows: before, waiting: 0, showAll };
  const isFirst = before === undefined || (before.length === 0 && !holdsFirst);
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  const now =
    isFirst || !(isRead || isHeld(place)) ? rows : before.map((row) => byKey.get(keyOf(row)) ?? row);
  shown.current = { list, rows: now };
  const keys = new Set(now.map(keyOf));
  return { rows: now, waiting: rows.filter((row) => !keys.has(keyOf(row))).length, showAll };
}
