import { Button } from "../../parts/button.tsx";
import { useMemo, useState } from "preact/hooks";
import type { RevisionBreak } from "../../../domain/action.ts";
import { SubscriptionLink } from "../../records/delivery-acts.tsx";
import { Copy } from "../../parts/copy.tsx";
import type { Subscription } from "../../../domain/subscription.ts";
import { numberText } from "../../parts/time.tsx";
import { Pieces, Pin } from "./diff-view.tsx";
import { placeInPayload, valueAt } from "./payload-places.ts";
import { jsonLines } from "./schema-lines.ts";
import { brokenFields, type UsedField, usedFields } from "./used-fields.ts";

const SHOWN_BREAKS = 50;

/** What a schema would break: who, where, a payload that shows it, and what to do instead. */
export function BreakList(props: {
  readonly breaks: readonly RevisionBreak[];
  /** The schema that is compared, and the one it is compared with. */
  readonly after: unknown;
  readonly before: unknown;
  readonly subscribers: readonly Subscription[] | undefined;
}) {
  const { breaks, after, before, subscribers = [] } = props;
  const used = useMemo(() => usedFields(subscribers), [subscribers]);
  const [all, setAll] = useState(false);
  const shown = all ? breaks : breaks.slice(0, SHOWN_BREAKS);
  return (
    <section class="panel" aria-label="Breaks">
      {breaks.some(({ side }) => side === "consumer") && <Receivers subscribers={subscribers} />}
      <ol class="breaks">
        {shown.map((one, index) => (
          <Break
            key={`${one.pointer} ${one.message}`}
            number={index + 1}
            broken={one}
            schemas={[after, before]}
            used={used}
          />
        ))}
      </ol>
      {shown.length < breaks.length && (
        <p class="more">
          <span>
            {numberText(shown.length)} of {numberText(breaks.length)} breaks
          </span>
          <Button look="bare" run={() => setAll(true)} label="Show all" />
        </p>
      )}
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
      {length === 1 ? "1 subscription receives" : `${numberText(length)} subscriptions receive`} this action:{" "}
      {subscribers.slice(0, MOST_NAMED).map((one, index) => (
        <>
          {index > 0 && ", "}
          <SubscriptionLink of={{ ...one, subscription_id: one.rowid }} />
        </>
      ))}
      {length > MOST_NAMED && ` and ${numberText(length - MOST_NAMED)} more`}
    </p>
  );
}

/** Which subscriptions look at fields. */
export function UsedLines({ fields }: { readonly fields: readonly UsedField[] }) {
  return (
    <>
      {fields.slice(0, MOST_NAMED).map(({ subscription, field, by }) => (
        <span key={`${subscription.rowid} ${field} ${by}`} class="line soft">
          <SubscriptionLink of={{ ...subscription, subscription_id: subscription.rowid }} />{" "}
          {by === "filter" ? "filters by" : "keeps the order by"} <code>{field}</code>
        </span>
      ))}
      {fields.length > MOST_NAMED && <span class="line soft">and {fields.length - MOST_NAMED} more.</span>}
    </>
  );
}

/** "… has become required. A producer is refused." → the first sentence, and the others. */
function sentences(message: string): readonly [string, string] {
  const end = /[.!] (?=[A-Z])/.exec(message);
  if (end === null) return [message.replace(/\.$/, ""), ""];
  return [message.slice(0, end.index), message.slice(end.index + 2)];
}

function Break(props: {
  readonly number: number;
  readonly broken: RevisionBreak;
  readonly schemas: readonly unknown[];
  readonly used: readonly UsedField[];
}) {
  const { number, broken, schemas } = props;
  const [title, rest] = sentences(broken.message);
  return (
    <li id={`break-${number}`} tabIndex={-1}>
      <Pin number={number} to={`line-${number}`} label={`Where break ${number} is`} />
      <div class="body">
        <h3 class="break">{title}</h3>
        <p class="soft">
          {rest}
          {broken.certainty === "cannot_prove" && (
            <span class="warn-text"> It may be harmless, but that cannot be proven.</span>
          )}
        </p>
        {broken.pointer !== "" && <code class="at">{broken.pointer}</code>}
        <UsedLines fields={brokenFields(props.used, schemas, broken)} />
        {broken.example !== undefined && <Witness broken={broken} schemas={schemas} isOpen={number === 1} />}
        <p class="instead soft">
          <b>Instead</b> {broken.remedy}
        </p>
      </div>
    </li>
  );
}

const WHOLE_LINES = 16;
const AROUND_LINES = 3;

function Witness(props: {
  readonly broken: RevisionBreak;
  readonly schemas: readonly unknown[];
  readonly isOpen: boolean;
}) {
  const { broken, schemas, isOpen } = props;
  const { example, pointer } = broken;
  const text = useMemo(() => JSON.stringify(example, null, 2), [example]);
  const lines = useMemo(() => jsonLines(text), [text]);
  const at = useMemo(() => placeInPayload(schemas, example, pointer), [...schemas, example, pointer]);
  const mark = Math.max(
    0,
    lines.findIndex((line) => line.pointer === at),
  );
  const [isWhole, setWhole] = useState(isOpen && lines.length <= WHOLE_LINES);
  const first = isWhole ? 0 : Math.max(0, mark - AROUND_LINES);
  const shown = isWhole ? lines : lines.slice(first, mark + AROUND_LINES + 1);
  const missing = missingName(broken, valueAt(example, at));
  return (
    <div class="witness">
      <header>
        Shown by this payload
        <span class="push row">
          {(shown.length < lines.length || (isWhole && lines.length > 2 * AROUND_LINES + 1)) && (
            <button class="btn bare" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
              {isWhole ? "Less" : "Whole payload"}
            </button>
          )}
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

/** The name that has become required, and that the payload has not. */
function missingName({ pointer, is, message }: RevisionBreak, value: unknown): string | undefined {
  if (!pointer.endsWith("/required") || !Array.isArray(is)) return undefined;
  const absent = is.filter((name) => typeof name === "string" && valueAt(value, `/${name}`) === undefined);
  return (
    (absent as string[]).find((name) => message.includes(JSON.stringify(name))) ??
    (absent[0] as string | undefined)
  );
}
