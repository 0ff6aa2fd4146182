import { Button } from "../../parts/button.tsx";
import { useState } from "preact/hooks";
import type { Delivery } from "../../../domain/delivery.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { may } from "../../api/identity.ts";
import { askJson, changes, ApiError } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { canRetry, canSkip } from "../../records/attempt-times.ts";
import { countText, numberText } from "../../parts/texts.ts";
import { linkTo } from "../../parts/route.ts";
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

const THE_BEGINNING = "1970-01-01T00:00:00Z";

/** Leads to a replay of all that have failed of a subscription, in the background. */
export function AllThatFailed(props: {
  readonly subscription: Subscription | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
}) {
  const { subscription, from = THE_BEGINNING, to } = props;
  if (subscription === undefined) {
    return <div class="many">Filter by a subscription to send all again that have failed of it.</div>;
  }
  if (!may("write", subscription.application)) return null;
  const link = linkTo(["subscriptions", subscription.rowid, "replay"], { status: "failed", from, to });
  return (
    <div class="many">
      All that failed can be sent again in the background.
      <Button look="push" to={link} label="Send all again…" />
    </div>
  );
}
