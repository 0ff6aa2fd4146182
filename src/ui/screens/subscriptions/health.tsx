import type { Delivery, SubscriptionAttempt } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { useResource, withQuery } from "../../api/resource.ts";
import { Command } from "../../parts/copy.tsx";
import { Button, Section, Segments } from "../../parts/layout.tsx";
import { choiceIn, linkTo, type Route } from "../../parts/route.ts";
import { Loaded, Status } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/values.tsx";
import { type DeliveryProps, Next } from "../../records/delivery.tsx";
import { answerOf, heightOf, kindOf, tallyOf } from "./attempt-strip.ts";

const FORMS = { bars: "Bars", table: "Table" } as const;
const SHOWN = 50;
const EVERY_MS = 2_000;
const SLOT = 20;
const BAR = 14;
const HALF = 32;

const keyOf = ({ delivery_id: delivery, attempt, started_at: at }: SubscriptionAttempt): string =>
  `${delivery} ${attempt} ${at}`;

const COLUMNS: readonly Column<SubscriptionAttempt>[] = [
  {
    head: "Outcome",
    cell: (attempt) => {
      const kind = kindOf(attempt);
      return kind === "returned" ? <span class="soft">Cut short</span> : <Status state={kind} />;
    },
  },
  { head: "Answer", cell: (attempt) => <code>{answerOf(attempt)}</code> },
  {
    head: "Delivery",
    grow: true,
    cell: ({ delivery_id: delivery, attempt }) => (
      <>
        {delivery} <span class="sub">attempt {attempt}</span>
      </>
    ),
  },
  { head: "Began", wide: true, cell: ({ started_at: at }) => <Time at={at} exact /> },
  { head: "Took", right: true, cell: ({ duration_ms: ms }) => durationText(ms) },
];

/** The last attempts of a subscription, oldest left: delivered above the line, failed below, higher the longer they took. */
export function HealthStrip({ id, route }: { readonly id: number; readonly route: Route }) {
  const path = withQuery(`/v1/subscriptions/${id}/attempts`, { limit: SHOWN });
  const list = useResource<readonly SubscriptionAttempt[]>(path, { everyMs: EVERY_MS });
  const form = choiceIn(route, "attempts", FORMS, "bars");
  return (
    <Section
      title={`Last ${SHOWN} attempts`}
      label="Last attempts"
      note={<span class="hide-s">height is duration; delivered above the line, failed below</span>}
      aside={<Segments label="Shown as" {...form} />}
    >
      <Loaded source={list} rows={3}>
        {(newestFirst) =>
          newestFirst.length === 0 ? (
            <div class="empty">Nothing has been sent to it yet.</div>
          ) : (
            <>
              {form.picked === "table" ? (
                <Table
                  label="Last attempts"
                  rows={newestFirst}
                  columns={COLUMNS}
                  keyOf={keyOf}
                  link={({ delivery_id: delivery }) => linkTo(["deliveries", delivery])}
                />
              ) : (
                <Strip attempts={newestFirst.toReversed()} />
              )}
              <TallyInWords attempts={newestFirst} />
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

/** The bars are for the eye and the mouse: what they say stands in words below, and all of it in the table. */
function Strip({ attempts }: { readonly attempts: readonly SubscriptionAttempt[] }) {
  return (
    <div class="strip">
      <svg viewBox={`0 0 ${SHOWN * SLOT} ${2 * HALF}`} preserveAspectRatio="none" aria-hidden="true">
        <path class="axis" d={`M0 ${HALF}H${SHOWN * SLOT}`} />
        {attempts.map((attempt, index) => {
          const kind = kindOf(attempt);
          const height = heightOf(attempt.duration_ms) * (HALF - 2);
          const x = index * SLOT;
          return (
            <a key={keyOf(attempt)} href={linkTo(["deliveries", attempt.delivery_id])} tabindex={-1}>
              <rect class="slot" x={x} y="0" width={SLOT} height={2 * HALF}>
                <title>
                  {`${kind === "returned" ? "cut short" : kind}, ${answerOf(attempt)}, ${durationText(attempt.duration_ms)}; delivery ${attempt.delivery_id}, attempt ${attempt.attempt}`}
                </title>
              </rect>
              <rect
                class={kind}
                x={x + (SLOT - BAR) / 2}
                y={kind === "failed" ? HALF + 1 : HALF - 1 - height}
                width={BAR}
                height={height}
                rx="1.5"
              />
            </a>
          );
        })}
      </svg>
      <p class={attempts.length < SHOWN ? "ends few" : "ends"}>
        <span>
          oldest <Time at={attempts[0]!.started_at} />
        </span>
        <span>
          newest <Time at={attempts.at(-1)!.started_at} />
        </span>
      </p>
    </div>
  );
}

function TallyInWords({ attempts }: { readonly attempts: readonly SubscriptionAttempt[] }) {
  const { delivered, failed, returned, errors, p50, p95 } = tallyOf(attempts);
  return (
    <p class="tallies">
      {delivered > 0 && (
        <span>
          <Status state="delivered" word={false} /> {delivered} delivered
        </span>
      )}
      {failed > 0 && (
        <span class="danger-text">
          <Status state="failed" word={false} /> {failed} failed
        </span>
      )}
      {errors.length > 0 && (
        <span>
          {errors.map(([error, count], index) => (
            <span key={error}>
              {index > 0 && ", "}
              {count} × <code>{error}</code>
            </span>
          ))}
        </span>
      )}
      {returned > 0 && <span>{returned} cut short, by a restart or an end of its lease</span>}
      {p50 !== null && p95 !== null && (
        <span class="push">
          p50 {durationText(p50)}, p95 {durationText(p95)}
        </span>
      )}
    </p>
  );
}

const WORDS = { all: "All", waiting: "Waiting", held: "Held", failed: "Failed" } as const;
const NOTHING: Readonly<Record<keyof typeof WORDS, string>> = {
  all: "It has no delivery yet.",
  waiting: "None waits for its next attempt.",
  held: "None is held.",
  failed: "None has failed for good.",
};
const ROWS = 12;

const columnsOf = (subscription: Subscription): readonly Column<Delivery>[] => [
  { head: "State", cell: ({ status }) => <Status state={status} /> },
  {
    head: "Delivery",
    grow: true,
    cell: ({ rowid, last_error: error }) => (
      <>
        {rowid} {error !== null && <code class="sub">{error}</code>}
      </>
    ),
  },
  {
    head: "Event",
    right: true,
    wide: true,
    cell: ({ event_id: id }) => <a href={linkTo(["events", id])}>{id}</a>,
  },
  { head: "Created", wide: true, cell: ({ timestamped }) => <Time at={timestamped} /> },
  { head: "Attempts", right: true, wide: true, cell: ({ attempt }) => attempt },
  {
    head: "Next or took",
    right: true,
    cell: (delivery) => <NextOrTook delivery={delivery} subscription={subscription} />,
  },
];

function NextOrTook({ delivery, subscription }: DeliveryProps) {
  const { finished_at: finished, status, timestamped } = delivery;
  if (status === "delivering") return <>now</>;
  if (status === "filtered") return <span class="muted">not sent</span>;
  if (finished !== null) return <>{durationText(Date.parse(finished) - Date.parse(timestamped))}</>;
  return <Next delivery={delivery} subscription={subscription} />;
}

/** The newest deliveries of a subscription: all, or those in a state that may need a person. */
export function DeliveriesOf(props: { readonly subscription: Subscription; readonly route: Route }) {
  const { subscription, route } = props;
  const { rowid: id } = subscription;
  const states = choiceIn(route, "deliveries", WORDS, "all");
  const status = states.picked === "all" ? undefined : states.picked;
  const path = withQuery("/v1/deliveries", { subscription: id, limit: ROWS, status });
  const list = useResource<readonly Delivery[]>(path, { everyMs: EVERY_MS });
  return (
    <Section title="Deliveries" aside={<Segments label="Which deliveries" {...states} />}>
      <Loaded source={list} rows={6}>
        {(rows) =>
          rows.length === 0 ? (
            <div class="empty">{NOTHING[states.picked]}</div>
          ) : (
            <>
              <Table
                label="Deliveries"
                rows={rows}
                columns={columnsOf(subscription)}
                keyOf={({ rowid }) => rowid}
                link={({ rowid }) => linkTo(["deliveries", rowid])}
              />
              <div class="more">
                <span>The newest {rows.length}</span>
                <Button
                  look="bare"
                  to={linkTo(["deliveries"], { subscription: id, status })}
                  label="All of them"
                />
              </div>
            </>
          )
        }
      </Loaded>
      <Command
        text={`evreg deliveries list --subscription ${id}${status === undefined ? "" : ` --status ${status}`}`}
      />
    </Section>
  );
}
