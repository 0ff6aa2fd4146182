import { useState } from "preact/hooks";
import type { BacklogShare, Stats } from "../../../domain/stats/stats.ts";
import {
  attention,
  attentionBySubscription,
  attentionCount,
  type SubscriptionAttention,
} from "../../api/attention.ts";
import type { ApiError } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { Button } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Status } from "../../parts/states.tsx";
import { isScrolled, useStill } from "../../parts/still.ts";
import { countText, durationText, numberText, useNow } from "../../parts/values.tsx";
import { AttentionWords, SubscriptionName } from "../../records/subscription.tsx";
import { RANGES } from "./figures.ts";

const SHOWN = 10;
/** Deliveries that were due for longer are late. */
const LATE_MS = 10_000;

/** How things are in one sentence, what needs a person, and what each of them can do about it. */
export function Verdict(props: {
  readonly stats: Stats | undefined;
  readonly statsError: ApiError | undefined;
}) {
  const { stats, statsError } = props;
  const now = useNow(5_000);
  const [isAll, setAll] = useState(false);
  const { answer, error } = attention.use();
  const items = answer === undefined ? undefined : attentionBySubscription(answer.data, now);
  const count = answer === undefined ? 0 : attentionCount(answer, now);
  // A row more moves all that is beneath, so the pointer anywhere on the screen holds them.
  const still = useStill({
    list: "",
    rows: items,
    keyOf: ({ id }) => id,
    place: "#main",
    holdsFirst: true,
    isRead: isScrolled(),
  });
  const shown = isAll ? still.rows : still.rows?.slice(0, SHOWN);
  const failure = statsError ?? error;
  return (
    <>
      <header class="head">
        <div class="what">
          <h1 aria-live="polite">{items === undefined ? "Overview" : verdictOf(count)}</h1>
          <p class="lede two-lines">
            {failure !== undefined ? (
              <span class="danger-text">Not up to date: {failure.message}</span>
            ) : (
              stats !== undefined && restOf(stats, count > 0, now)
            )}
          </p>
        </div>
        <div class="fresh" aria-live="polite">
          {still.waiting > 0 && (
            <button onClick={still.showAll}>
              {countText(still.waiting, "more needs a person", "more need a person")}
            </button>
          )}
        </div>
      </header>
      {shown !== undefined && items !== undefined && shown.length > 0 && (
        <section class="panel" aria-label="What needs a person">
          <ul class="attention">
            {shown.map((one) => (
              <li key={one.id}>
                <AttentionRow one={one} isOver={!items.some(({ id }) => id === one.id)} />
              </li>
            ))}
          </ul>
          {count > SHOWN && (
            <div class="more">
              <span>The gravest first</span>
              {count > items.length ? (
                <Button
                  look="bare"
                  to={linkTo(["subscriptions"], { state: "troubled" })}
                  label={`and ${numberText(count - SHOWN)} more`}
                />
              ) : (
                <button class="btn bare" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
                  {isAll ? "Fewer" : `and ${numberText(count - SHOWN)} more`}
                </button>
              )}
            </div>
          )}
        </section>
      )}
    </>
  );
}

/** @param props.isOver whether it needs nobody any more: its row stands as long as somebody may press in it */
function AttentionRow({ one, isOver }: { readonly one: SubscriptionAttention; readonly isOver: boolean }) {
  const { id, state, failed } = one;
  return (
    <>
      <Status state={isOver ? "active" : (state?.reason ?? "failed")} />
      <p>
        <a href={linkTo(["subscriptions", id])}>
          <SubscriptionName record={one} />
        </a>{" "}
        {isOver ? (
          "It needs nobody any more."
        ) : (
          <>
            {state !== undefined && <AttentionWords item={state} />}{" "}
            {failed !== undefined && <AttentionWords item={failed} />}
          </>
        )}
      </p>
      <span class="acts">
        <Acts one={one} />
      </span>
    </>
  );
}

const verdictOf = (count: number): string =>
  count === 0 ? "Nothing needs a person" : countText(count, "thing needs a person", "things need a person");

/** What is overdue: by evreg itself, or by consumers that do not claim and by rates. */
function restOf({ totals, backlog: { due, paced }, range }: Stats, isTrouble: boolean, now: number): string {
  const ageMs = ({ since }: BacklogShare): number => (since === null ? 0 : now - Date.parse(since));
  const { p99 } = totals.latency_ms;
  const late =
    ageMs(due) > LATE_MS
      ? `Deliveries have been due for ${durationText(ageMs(due))}`
      : ageMs(paced) > LATE_MS
        ? `Deliveries have waited for a consumer or their rate for ${durationText(ageMs(paced))}`
        : isTrouble
          ? "All else arrives: nothing is overdue"
          : "Nothing is overdue";
  return p99 === null
    ? `${late}.`
    : `${late}; 99 % of the deliveries of the last ${RANGES[range].words} arrived within ${durationText(p99)}.`;
}

function Acts({ one }: { readonly one: SubscriptionAttention }) {
  const { id, application, state, failed } = one;
  const blocking = state?.reason === "blocked" ? state.delivery_id : null;
  return (
    <>
      {failed !== undefined && (
        <Button
          to={linkTo(["deliveries"], { subscription: id, status: "failed" })}
          label={
            failed.deliveries === 1 ? "See the delivery" : `See the ${numberText(failed.deliveries ?? 0)}`
          }
        />
      )}
      {blocking !== null ? (
        <Button to={linkTo(["deliveries", blocking])} label="See why" />
      ) : state !== undefined ? (
        <Button to={linkTo(["subscriptions", id])} label="Review" />
      ) : (
        may("write", application) && (
          <Button
            to={linkTo(["subscriptions", id, "replay"], { status: "failed", from: failed?.published_from })}
            label="Replay…"
          />
        )
      )}
    </>
  );
}
