import { Button } from "../../parts/button.tsx";
import { useState } from "preact/hooks";
import type { Delivery } from "../../../domain/delivery.ts";
import type { Replay, ReplayCount } from "../../../domain/replay.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { askJson, changes, ApiError } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { canRetry, canSkip } from "../../records/attempt-times.ts";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { countText, numberText } from "../../parts/texts.ts";
import { goTo, linkTo } from "../../parts/route.ts";
import { say, sayError } from "../../parts/toast.tsx";

const deliveriesText = (count: number): string => countText(count, "delivery", "deliveries");

/** What can be done with the rows that were picked. */
export function Picked(props: { readonly deliveries: readonly Delivery[]; readonly clear: () => void }) {
  const { deliveries, clear } = props;
  const [doneSoFar, setDoneSoFar] = useState<number | undefined>();
  const { act } = useActing(sayError);
  const mine = deliveries.filter(({ application }) => may("write", application));
  const toRetry = mine.filter(canRetry);
  const toSkip = mine.filter(canSkip);

  const each = async (ones: readonly Delivery[], verb: "retry" | "skip", what: string): Promise<void> => {
    const refused: string[] = [];
    try {
      for (const [index, { rowid }] of ones.entries()) {
        setDoneSoFar(index);
        await askJson(`/v1/deliveries/${rowid}/${verb}`, { method: "POST" }).catch((error: unknown) => {
          // Its state has changed meanwhile: the others are still to be done.
          if (!(error instanceof ApiError) || error.status !== 409) throw error;
          refused.push(`${rowid}: ${error.message}`);
        });
      }
    } finally {
      setDoneSoFar(undefined);
      changes.value += 1;
      clear();
    }
    if (refused.length === 0) say(`${deliveriesText(ones.length)} ${what}.`);
    else sayError(`${ones.length - refused.length} of ${ones.length} ${what}. ${refused[0]}`);
  };
  const again = toRetry.filter(({ status }) => status === "delivered").length;
  const retry = (): void =>
    void act(() => each(toRetry, "retry", "sent again"), {
      title: `Send ${deliveriesText(toRetry.length)} again?`,
      body: (
        <>
          <p>They are sent now, with all their retries, before others of their subscriptions.</p>
          {again > 0 && <p>{numberText(again)} of them were delivered, and are received once more.</p>}
          <LeftOut count={deliveries.length - toRetry.length} why="under way, held or cancelled" />
        </>
      ),
      act: `Send ${numberText(toRetry.length)}`,
    });
  const skip = (): void =>
    void act(() => each(toSkip, "skip", "given up"), {
      title: `Give up ${deliveriesText(toSkip.length)}?`,
      body: (
        <>
          <p>They then have failed. An ordered subscription goes on with the next one.</p>
          <p>They can be sent again later, then out of their order.</p>
          <LeftOut count={deliveries.length - toSkip.length} why="not failing, or have ended" />
        </>
      ),
      act: `Give up ${numberText(toSkip.length)}`,
      keep: "Keep trying",
      danger: true,
    });
  return (
    <div class="many" role="region" aria-label="Picked deliveries">
      <span role="status">
        {doneSoFar === undefined
          ? `${deliveriesText(deliveries.length)} picked`
          : `${numberText(doneSoFar)} of ${numberText(deliveries.length)} done`}
      </span>
      {doneSoFar === undefined && (
        <span class="row push">
          <Button run={retry} disabled={toRetry.length === 0} label="Send again…" />
          <Button run={skip} disabled={toSkip.length === 0} label="Give up…" />
          <Button look="bare" run={clear} label="Pick none" />
        </span>
      )}
    </div>
  );
}

function LeftOut({ count, why }: { readonly count: number; readonly why: string }) {
  if (count === 0) return null;
  return (
    <p>
      {deliveriesText(count)} of those picked {count === 1 ? "is" : "are"} left out: {why}.
    </p>
  );
}

interface Selection {
  readonly subscription: number | undefined;
  readonly action: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** Each takes a call to count, and perhaps one to begin. */
const MAX_SUBSCRIPTIONS = 200;
const THE_BEGINNING = "1970-01-01T00:00:00Z";

/** Sends all failed deliveries that a filter leaves, as replays: of how many, it finds out first. */
export function AllThatMatch(props: {
  readonly selection: Selection;
  readonly subscriptions: readonly Subscription[];
}) {
  const { selection, subscriptions } = props;
  const { act } = useActing(sayError);
  const [counting, setCounting] = useState<string | undefined>();
  const { subscription, action, from, to } = selection;
  // A replay would send all events of one that matches more than the action.
  const wanted = subscriptions.filter(
    (one) =>
      may("write", one.application) &&
      (subscription === undefined || one.rowid === subscription) &&
      (action === undefined || one.action === action),
  );
  if (wanted.length === 0 || wanted.length > MAX_SUBSCRIPTIONS) return null;
  const body = { status: "failed", from: from ?? THE_BEGINNING, ...(to === undefined ? {} : { to }) };
  const count = async (): Promise<readonly ReplayCount[]> => {
    const counts: ReplayCount[] = [];
    for (const [index, { rowid }] of wanted.entries()) {
      setCounting(`Counting, ${index + 1} of ${wanted.length} subscriptions`);
      const request = { method: "POST", body: { ...body, dry_run: true } };
      const { data } = await askJson<ReplayCount>(`/v1/subscriptions/${rowid}/replay`, request);
      if (data.total > 0) counts.push(data);
    }
    return counts;
  };
  const begin = async (counts: readonly ReplayCount[]): Promise<void> => {
    const refused: string[] = [];
    for (const { subscription_id: id } of counts) {
      await askJson<Replay>(`/v1/subscriptions/${id}/replay`, { method: "POST", body }).catch(
        (error: unknown) => {
          // One that has a replay already holds up no other.
          if (!(error instanceof ApiError) || error.status !== 409) throw error;
          refused.push(error.message);
        },
      );
    }
    if (refused.length > 0) sayError(refused.join(" "));
    if (refused.length < counts.length) goTo(linkTo(["replays"]));
  };
  const run = async (): Promise<void> => {
    let counts: readonly ReplayCount[] = [];
    const isCounted = await act(async () => {
      counts = await count().finally(() => setCounting(undefined));
    });
    if (!isCounted) return;
    const total = counts.reduce((sum, one) => sum + one.total, 0);
    if (total === 0)
      return say("None of them can be sent again: their events or subscriptions have changed.");
    await act(() => begin(counts), {
      title: `Send ${deliveriesText(total)} again?`,
      body: <CountsOf counts={counts} />,
      act: `Replay ${numberText(total)}`,
    });
  };
  return (
    <div class="many">
      <span role="status">
        {counting ?? "All that failed and match can be sent again in the background."}
      </span>
      <Button look="push" run={run} disabled={counting !== undefined} label="Send all again…" />
    </div>
  );
}

const SHOWN_COUNTS = 8;

function CountsOf({ counts }: { readonly counts: readonly ReplayCount[] }) {
  const more = counts.length - SHOWN_COUNTS;
  return (
    <>
      <ul class="counts">
        {counts.slice(0, SHOWN_COUNTS).map((count) => (
          <li key={count.subscription_id}>
            <span class="grow">
              <SubscriptionName of={count} />
            </span>
            <span class="push">{numberText(count.total)}</span>
          </li>
        ))}
        {more > 0 && <li>and {numberText(more)} subscriptions more</li>}
      </ul>
      <p>
        A replay for each subscription sends them in the background; live deliveries go first. The times mean
        when the events were published.
      </p>
    </>
  );
}
