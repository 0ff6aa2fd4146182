import { Button, Segments } from "../../parts/button.tsx";
import { useMemo, useState } from "preact/hooks";
import { Pieces } from "../../parts/json-view.tsx";
import { numberText } from "../../parts/time.tsx";
import { CodeBox } from "../../parts/layout.tsx";
import { goTo, linkTo, type Route } from "../../parts/route.ts";
import { type BreakPlace, type DiffRow, type Fold, foldedRows, pinsOf } from "./schema-diff.ts";

/** Each row is some twenty elements. */
const SHOWN_ROWS = 1_500;

/** Leads from a pin to what is said there, and back. The address holds the screen, so no link can. */
function lookAt(id: string): void {
  const element = document.getElementById(id);
  element?.scrollIntoView({ block: "center" });
  element?.focus({ preventScroll: true });
}

export function Pin(props: { readonly number: number; readonly to: string; readonly label: string }) {
  const { number, to, label } = props;
  return (
    <button class="pin" aria-label={label} title={label} onClick={() => lookAt(to)}>
      {number}
    </button>
  );
}

/**
 * What differs between two schemas, with a pin for each break.
 * @param props.note what is compared
 */
export function DiffView(props: {
  readonly rows: readonly DiffRow[];
  readonly breaks: readonly BreakPlace[];
  readonly note: string;
  readonly route: Route;
}) {
  const { rows, breaks, note, route } = props;
  const isWhole = route.query["lines"] === "whole";
  const pins = useMemo(() => pinsOf(rows, breaks), [rows, breaks]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [most, setMost] = useState(SHOWN_ROWS);
  const folds: readonly Fold[] = useMemo(
    () => (isWhole ? [{ kind: "rows", rows, start: 0 }] : foldedRows(rows, new Set(pins.keys()))),
    [rows, pins, isWhole],
  );
  const changed = rows.filter(({ sign }) => sign !== " ").length;
  let room = most;
  return (
    <CodeBox
      title="What changes"
      note={note}
      acts={
        <Segments
          label="Lines"
          choices={{ changes: "Changes", whole: "Whole" }}
          picked={isWhole ? "whole" : "changes"}
          pick={(lines) =>
            goTo(linkTo(route.path, { ...route.query, lines: lines === "whole" ? lines : undefined }), {
              replace: true,
            })
          }
        />
      }
    >
      {changed === 0 && !isWhole ? (
        <p class="empty">The two are alike.</p>
      ) : (
        <ol class="code diff" tabIndex={0} aria-label="Difference of the schemas">
          {folds.map((fold) => {
            if (room <= 0) return null;
            if (fold.kind === "alike" && !opened.has(fold.start)) {
              return (
                <li key={`alike-${fold.start}`} class="hunk">
                  <button onClick={() => setOpened((before) => new Set(before).add(fold.start))}>
                    {numberText(fold.count)} lines alike
                  </button>
                  {fold.pointer !== "" && <span class="where">{fold.pointer}</span>}
                </li>
              );
            }
            const all = fold.kind === "rows" ? fold.rows : rows.slice(fold.start, fold.start + fold.count);
            const shown = all.slice(0, room);
            room -= shown.length;
            return shown.map((row, index) => (
              <Row key={fold.start + index} row={row} pins={pins.get(fold.start + index)} />
            ));
          })}
        </ol>
      )}
      {room <= 0 && (
        <p class="more">
          <span>The first {numberText(most)} lines.</span>
          <Button look="bare" run={() => setMost(most + SHOWN_ROWS)} label="Show more" />
        </p>
      )}
    </CodeBox>
  );
}

const CLASSES = { " ": "", "-": "del", "+": "add" } as const;
const SIGNS = { " ": " ", "-": "−", "+": "+" } as const;

function Row({ row, pins }: { readonly row: DiffRow; readonly pins: readonly number[] | undefined }) {
  const { sign, before, after, line } = row;
  return (
    <li class={CLASSES[sign]}>
      <Gutter number={before} pins={pins} />
      <span class="g">{after}</span>
      <span class="sign">{SIGNS[sign]}</span>
      <Pieces pieces={line.pieces} />
    </li>
  );
}

function Gutter(props: { readonly number: number | null; readonly pins: readonly number[] | undefined }) {
  const { number, pins } = props;
  if (pins === undefined) return <span class="g">{number}</span>;
  return (
    <span class="g pinned">
      {pins.map((pin) => (
        <span key={pin} id={`line-${pin}`} tabIndex={-1}>
          <Pin number={pin} to={`break-${pin}`} label={`Break ${pin}`} />
        </span>
      ))}
    </span>
  );
}
