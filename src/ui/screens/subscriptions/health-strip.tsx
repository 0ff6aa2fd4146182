import type { SubscriptionAttempt } from "../../../domain/delivery.ts";
import { withQuery } from "../../api/request.ts";
import { useResource } from "../../api/resource.ts";
import { Loaded } from "../../parts/states.tsx";
import { Status } from "../../parts/status.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { durationText, Time } from "../../parts/time.tsx";
import { goTo, linkTo, type Route } from "../../parts/route.ts";
import { answerOf, heightOf, kindOf, tallyOf } from "./attempt-strip.ts";

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
  const isTable = route.query["attempts"] === "table";
  const show = (): void =>
    goTo(linkTo(route.path, { ...route.query, attempts: isTable ? undefined : "table" }), { replace: true });
  return (
    <section aria-label="Last attempts">
      <header>
        <h2>Last {SHOWN} attempts</h2>
        <p class="hide-s">height is duration; delivered above the line, failed below</p>
        {list.answer !== undefined && list.answer.data.length > 0 && (
          <button class="btn bare push" aria-pressed={isTable} onClick={show}>
            {isTable ? "As bars" : "As a table"}
          </button>
        )}
      </header>
      <Loaded of={list} rows={3}>
        {(newestFirst) =>
          newestFirst.length === 0 ? (
            <div class="empty">Nothing has been sent to it yet.</div>
          ) : (
            <>
              {isTable ? (
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
    </section>
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
