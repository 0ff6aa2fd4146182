import { useMemo, useState } from "preact/hooks";
import type { SchemaBreak } from "../../../domain/action.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { type FieldPath, pathNamed, pointerTo } from "../../../json/field-path.ts";
import { Copy } from "../../parts/copy.tsx";
import { Pieces } from "../../parts/json-view.tsx";
import { Button, CodeBox, Segments } from "../../parts/layout.tsx";
import { choiceIn, type Route } from "../../parts/route.ts";
import { countText, numberText } from "../../parts/values.tsx";
import { SubscriptionLink } from "../../records/subscription.tsx";
import {
  type BreakPlace,
  brokenFields,
  type DiffRow,
  type Fold,
  foldedRows,
  type JsonLine,
  jsonLines,
  parentOf,
  pinsOf,
  type UsedField,
  usedFields,
} from "./schema-diff.ts";

const LINES = { changes: "Changes", whole: "Whole" } as const;
/** Each row is some twenty elements. */
const SHOWN_ROWS = 1_500;

/** Leads from a pin to what is said there, and back. The address holds the screen, so no link can. */
function lookAt(id: string): void {
  const element = document.getElementById(id);
  element?.scrollIntoView({ block: "center" });
  element?.focus({ preventScroll: true });
}

function Pin(props: { readonly number: number; readonly to: string; readonly label: string }) {
  const { number, to, label } = props;
  return (
    <button class="pin" aria-label={label} title={label} onClick={() => lookAt(to)}>
      {number}
    </button>
  );
}

/** What differs between two schemas, with a pin for each break. */
export function DiffView(props: {
  readonly rows: readonly DiffRow[];
  readonly breaks: readonly BreakPlace[];
  readonly note: string;
  readonly route: Route;
}) {
  const { rows, breaks, note, route } = props;
  const lines = choiceIn(route, "lines", LINES, "changes");
  const isWhole = lines.picked === "whole";
  const pins = useMemo(() => pinsOf(rows, breaks), [rows, breaks]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [most, setMost] = useState(SHOWN_ROWS);
  const folds: readonly Fold[] = useMemo(
    () =>
      isWhole ? [{ start: 0, end: rows.length, isShown: true }] : foldedRows(rows, new Set(pins.keys())),
    [rows, pins, isWhole],
  );
  const changed = rows.filter(({ sign }) => sign !== " ").length;
  let room = most;
  return (
    <CodeBox title="What changes" note={note} aside={<Segments label="Lines" {...lines} />}>
      {changed === 0 && !isWhole ? (
        <p class="empty">The two are alike.</p>
      ) : (
        <ol class="code diff" tabIndex={0} aria-label="Difference of the schemas">
          {folds.map(({ start, end, isShown }) => {
            if (room <= 0) return null;
            if (!isShown && !opened.has(start)) {
              return (
                <li key={`alike-${start}`} class="hunk">
                  <button onClick={() => setOpened((before) => new Set(before).add(start))}>
                    {numberText(end - start)} lines alike
                  </button>
                  {parentOf(rows[end]?.line.pointer ?? "")}
                </li>
              );
            }
            const shown = rows.slice(start, Math.min(end, start + room));
            room -= shown.length;
            return shown.map((row, index) => (
              <Row key={start + index} row={row} pins={pins.get(start + index)} />
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
      {pins === undefined ? (
        <span class="g">{before}</span>
      ) : (
        <span class="g pinned">
          {pins.map((pin) => (
            <span key={pin} id={`line-${pin}`} tabIndex={-1}>
              <Pin number={pin} to={`break-${pin}`} label={`Break ${pin}`} />
            </span>
          ))}
        </span>
      )}
      <span class="g">{after}</span>
      <span class="sign">{SIGNS[sign]}</span>
      <Pieces pieces={line.pieces} />
    </li>
  );
}

/** What a schema would break, at most a hundred: who, where, a payload that shows it, and what to do instead. */
export function BreakList(props: {
  readonly breaks: readonly SchemaBreak[];
  readonly subscribers: readonly Subscription[] | undefined;
}) {
  const { breaks, subscribers = [] } = props;
  const used = useMemo(() => usedFields(subscribers), [subscribers]);
  return (
    <section class="panel" aria-label="Breaks">
      {breaks.some(({ side }) => side === "consumer") && <Receivers subscribers={subscribers} />}
      <ol class="breaks">
        {breaks.map((one, index) => (
          <Break key={`${one.pointer} ${one.message}`} number={index + 1} broken={one} used={used} />
        ))}
      </ol>
    </section>
  );
}

const MOST_NAMED = 10;

/** Whoever gets what nobody promised them. */
function Receivers({ subscribers }: { readonly subscribers: readonly Subscription[] }) {
  const { length } = subscribers;
  if (length === 0) return null;
  return (
    <p class="receivers break">
      {countText(length, "subscription receives", "subscriptions receive")} this action:{" "}
      {subscribers.slice(0, MOST_NAMED).map((one, index) => (
        <>
          {index > 0 && ", "}
          <SubscriptionLink record={one} />
        </>
      ))}
      {length > MOST_NAMED && ` and ${numberText(length - MOST_NAMED)} more`}
    </p>
  );
}

/** Which subscriptions look at fields. */
function UsedLines({ fields }: { readonly fields: readonly UsedField[] }) {
  return (
    <>
      {fields.slice(0, MOST_NAMED).map(({ subscription, field, by }) => (
        <span key={`${subscription.rowid} ${field} ${by}`} class="line soft">
          <SubscriptionLink record={subscription} /> {by === "filter" ? "filters by" : "keeps the order by"}{" "}
          <code>{field}</code>
        </span>
      ))}
      {fields.length > MOST_NAMED && <span class="line soft">and {fields.length - MOST_NAMED} more.</span>}
    </>
  );
}

function Break(props: {
  readonly number: number;
  readonly broken: SchemaBreak;
  readonly used: readonly UsedField[];
}) {
  const { number, broken } = props;
  const { change, message } = broken;
  return (
    <li id={`break-${number}`} tabIndex={-1}>
      <Pin number={number} to={`line-${number}`} label={`Where break ${number} is`} />
      <div class="body">
        <h3 class="break">{change.replace(/\.$/, "")}</h3>
        <p class={broken.certainty === "cannot_prove" ? "warn-text" : "soft"}>
          {message.slice(change.length)}
        </p>
        {broken.pointer !== "" && <code class="at">{broken.pointer}</code>}
        <UsedLines fields={brokenFields(props.used, broken.field)} />
        {broken.example !== undefined && <Witness broken={broken} />}
        <p class="instead soft">
          <b>Instead</b> {broken.remedy}
        </p>
      </div>
    </li>
  );
}

const WHOLE_LINES = 10;
const AROUND_LINES = 3;

/** A payload that shows a break; of a long one the lines around the place. */
function Witness({ broken }: { readonly broken: SchemaBreak }) {
  const { example, field } = broken;
  const text = useMemo(() => JSON.stringify(example, null, 2), [example]);
  const lines = useMemo(() => jsonLines(text), [text]);
  const path = useMemo(() => pathNamed(field), [field]);
  const { mark, missing } = useMemo(() => markIn(lines, path), [lines, path]);
  const isWhole = lines.length <= WHOLE_LINES;
  const first = isWhole ? 0 : Math.max(0, mark - AROUND_LINES);
  const shown = isWhole ? lines : lines.slice(first, mark + AROUND_LINES + 1);
  return (
    <div class="witness">
      <header>
        Shown by this payload
        <span class="push">
          <Copy text={text} what="the payload" />
        </span>
      </header>
      <ol class="code" tabIndex={0} aria-label="A payload that shows it">
        {shown.map((line, index) => {
          const number = first + index;
          return (
            <li key={number} class={number === mark ? "numbered hit" : "numbered"}>
              <span class="g">{number + 1}</span>
              <Pieces pieces={line.pieces} />
              {number === mark && missing !== undefined && <span class="note">← no {missing}</span>}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

/** The line of a place, else that of the nearest around it, and the step that is not there. */
function markIn(lines: readonly JsonLine[], path: FieldPath) {
  for (let end = path.length; end > 0; end -= 1) {
    const pointer = path.slice(0, end).reduce(pointerTo, "");
    const mark = lines.findIndex((line) => line.pointer === pointer);
    if (mark !== -1) return { mark, missing: path[end] };
  }
  return { mark: 0, missing: path[0] };
}
