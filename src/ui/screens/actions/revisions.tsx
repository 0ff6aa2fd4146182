import { useMemo } from "preact/hooks";
import type { ActionRevision } from "../../../domain/action.ts";
import { shellWord } from "../../../domain/formats.ts";
import { useResource, withQuery } from "../../api/resource.ts";
import { Command } from "../../parts/copy.tsx";
import { indented } from "../../parts/json-tokens.ts";
import { Button, NONE, Section } from "../../parts/layout.tsx";
import { goTo, linkTo } from "../../parts/route.ts";
import { Failed, Say, Waiting } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { countText, Time } from "../../parts/values.tsx";
import { type Exact, readRevision } from "../../records/exact-record.ts";
import { actionPath, checkSchema, mayChange, type PartProps, useVerdict } from "./action-parts.tsx";
import { BreakList, DiffView } from "./diff-view.tsx";
import { changeInShort, diffRows, inOrder } from "./schema-diff.ts";

/** Older ones are compared by their numbers. */
const SHOWN_ROWS = 50;
/** Characters of two schemas whose difference is said in the list. */
const SHORT_ENOUGH = 200_000;

interface RevisionLine {
  readonly revision: ActionRevision;
  readonly change: string;
}

/** The schemas that an action has had, and what differs between two of them. */
export function Revisions(props: PartProps) {
  const { action, route } = props;
  const { from, to } = route.query;
  const path = withQuery(`${actionPath(action.action)}/revisions`, { limit: SHOWN_ROWS });
  const list = useResource<readonly ActionRevision[]>(path);
  const read = list.answer?.data;
  const rows = useMemo(
    () =>
      read?.map((one, index): RevisionLine => ({ revision: one, change: changeOf(one, read[index + 1]) })),
    [read],
  );
  const second = numberIn(to) ?? (action.revision > 1 ? action.revision : undefined);
  const first = numberIn(from) ?? (second === undefined ? undefined : second - 1);
  const isPicked = from !== undefined || to !== undefined;
  const link = (query: Readonly<Record<string, number | undefined>>): string =>
    linkTo(route.path, { ...route.query, ...query });
  return (
    <>
      {isPicked && first !== undefined && second !== undefined && (
        <Comparison key={`${first} ${second}`} {...props} first={first} second={second} />
      )}
      <Section
        title="Revisions"
        note="open one to see what it changed, or pick two"
        aside={
          action.revision > 1 && (
            <>
              <Pick
                label="Compare"
                value={first}
                most={action.revision}
                pick={(number) => goTo(link({ from: number, to: second }))}
              />
              <Pick
                label="with"
                value={second}
                most={action.revision}
                pick={(number) => goTo(link({ from: first, to: number }))}
              />
            </>
          )
        }
      >
        <div class="panel">
          {rows === undefined ? (
            <Waiting source={list} rows={4} />
          ) : (
            <Table
              label="Revisions"
              rows={rows}
              columns={COLUMNS}
              keyOf={({ revision }) => revision.revision}
              link={({ revision: { revision } }) =>
                revision === 1
                  ? linkTo(["actions", action.action])
                  : link({ from: revision - 1, to: revision })
              }
              selected={isPicked ? second : undefined}
            />
          )}
          {read !== undefined && read.length === SHOWN_ROWS && (
            <div class="more">The newest {SHOWN_ROWS}. Compare older ones by their numbers.</div>
          )}
        </div>
      </Section>
      <Command text={`evreg actions history ${shellWord(action.action)}`} />
    </>
  );
}

const COLUMNS: readonly Column<RevisionLine>[] = [
  { head: "No.", right: true, cell: ({ revision }) => <span class="strong">{revision.revision}</span> },
  { head: "Since", wide: true, cell: ({ revision }) => <Time at={revision.timestamped} /> },
  { head: "Change", grow: true, cell: ({ change }) => <code class="soft">{change}</code> },
  {
    head: "Accepted",
    cell: ({ revision: { compatibility } }) =>
      compatibility === "none" ? <span class="warn-text">forced</span> : (compatibility ?? NONE),
  },
];

function changeOf(revision: ActionRevision, before: ActionRevision | undefined): string {
  if (revision.revision === 1) return "the first";
  if (before === undefined) return "";
  const [old, next] = [JSON.stringify(before.schemata), JSON.stringify(revision.schemata)];
  return old.length + next.length > SHORT_ENOUGH ? "a large schema: open it" : changeInShort(old, next);
}

const numberIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;

function Pick(props: {
  readonly label: string;
  readonly value: number | undefined;
  readonly most: number;
  readonly pick: (number: number) => void;
}) {
  const { label, value, most, pick } = props;
  return (
    <label class="row">
      <span class="soft">{label}</span>
      <span class="field">
        <input
          type="number"
          min={1}
          max={most}
          value={value}
          onChange={(event) => {
            const number = Number(event.currentTarget.value);
            if (Number.isInteger(number) && number >= 1 && number <= most) pick(number);
          }}
        />
      </span>
    </label>
  );
}

function Comparison(props: PartProps & { readonly first: number; readonly second: number }) {
  const { action, subscribers, route, first, second } = props;
  const pathOf = (revision: number): string => `${actionPath(action.action)}/revisions/${revision}`;
  const [before, after] = [
    useResource<Exact<ActionRevision>>(pathOf(first), { read: readRevision }),
    useResource<Exact<ActionRevision>>(pathOf(second), { read: readRevision }),
  ];
  const [old, next] = [before.answer?.data, after.answer?.data];
  const rows = useMemo(
    () => (old === undefined || next === undefined ? undefined : diffRows(old.exactText, next.exactText)),
    [old, next],
  );
  const trial = useVerdict(action.action, next?.exactText, { revision: first });
  const verdict = trial?.verdict;
  const breaks = useMemo(() => inOrder(rows ?? [], verdict?.breaks ?? []), [rows, verdict]);
  const failed = before.error ?? after.error;
  if (failed !== undefined) return <Failed error={failed} />;
  if (rows === undefined || old === undefined || next === undefined) {
    return <Waiting source={before} rows={6} />;
  }
  const goBack = (): void => {
    checkSchema(action.action, indented(next.exactText));
    goTo(linkTo(["actions", action.action, "check"]));
  };
  const isOld = second !== action.revision && mayChange(action);
  return (
    <>
      {trial === undefined ? (
        <Say state="pending" title={`Comparing revision ${first} with ${second}…`} />
      ) : trial.verdict === undefined ? (
        <Failed error={trial.error} title="Not compared" />
      ) : (
        <Say
          state={breaks.length > 0 ? "waiting" : "delivered"}
          title={
            breaks.length > 0
              ? `Revision ${second} breaks what revision ${first} promised in ${countText(breaks.length, "place")}.`
              : `Revision ${second} breaks nobody who relied on revision ${first}.`
          }
          button={isOld && <Button run={goBack} label={`Go back to ${second}…`} />}
        >
          Revision {second} was applied <Time at={next.timestamped} />
          {next.compatibility !== null &&
            (next.compatibility === "none"
              ? ", with nobody protected"
              : `, as nobody was broken whom the mode ${next.compatibility} protects`)}
          .
        </Say>
      )}
      <div class={breaks.length > 0 ? "cols even" : "stack"}>
        <DiffView rows={rows} breaks={breaks} note={`revision ${first} → ${second}`} route={route} />
        {breaks.length > 0 && <BreakList breaks={breaks} subscribers={subscribers} />}
      </div>
    </>
  );
}
