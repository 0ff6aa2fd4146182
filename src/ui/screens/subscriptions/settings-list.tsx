import type { Subscription } from "../../../domain/subscription.ts";
import { retryDefaults } from "../../api/session.ts";
import { indentedLines } from "../../parts/json-tokens.ts";
import { Lines } from "../../parts/json-view.tsx";
import { Definitions, type Facts } from "../../parts/layout.tsx";
import { capital, Relative, Time } from "../../parts/values.tsx";
import type { ReadSubscription } from "../../records/exact-record.ts";
import { isAhead } from "../../records/subscription.tsx";
import { BEARERS, formOf, retriesSentence, waitsText } from "./settings.ts";

const muted = (words: string) => <span class="muted">{words}</span>;

/** What a subscription is told, in words; with what goes for all where it says nothing. */
export function SettingsList({ subscription }: { readonly subscription: ReadSubscription }) {
  const { mode, max_retries: retries, filter, exactText, previous_secret_until: until } = subscription;
  const claimedAt = subscription.last_claim_at;
  const usual = retryDefaults();
  const waits = subscription.retry_schedule ?? usual.retry_schedule;
  return (
    <Definitions
      kind="settings"
      facts={{
        Retries: (
          <>
            {retriesSentence(retries, waits)}{" "}
            {retries > 1 && muted(`The waits: ${waitsText(retries, waits)}`)}
          </>
        ),
        Order: <Order subscription={subscription} />,
        ...plainRows(subscription, "Order and pace"),
        Filter:
          filter === null ? (
            muted("None: all events are sent")
          ) : (
            <Lines lines={indentedLines(exactText)} tall={false} />
          ),
        ...(mode === "push"
          ? {
              ...plainRows(subscription, "What is sent along"),
              Secret: isAhead(until, Date.now()) ? (
                <>
                  Rotating{" "}
                  <span class="muted">
                    the old one signs too until <Time at={until} />
                  </span>
                </>
              ) : (
                "One"
              ),
              Bearer: BEARERS[subscription.bearer],
            }
          : { "Last claim": claimedAt === null ? muted("None yet") : <Relative at={claimedAt} /> }),
        Created: <Time at={subscription.timestamped} />,
      }}
    />
  );
}

/** The settings of a group of the form, each as its description says it. */
function plainRows(subscription: Subscription, group: string): Facts {
  const rows = formOf(subscription.mode, group).map(
    ({ name, title = name, kind, unset = "none", words = String }) => {
      const value = subscription[name];
      if (value === null) return [title, muted(capital(unset))];
      const text = words(kind.write(value));
      return [title, kind.hasLines ? <code>{text}</code> : capital(text)];
    },
  );
  return Object.fromEntries(rows) as Facts;
}

function Order({
  subscription: { ordered, on_exhausted: exhausted },
}: {
  readonly subscription: Subscription;
}) {
  if (ordered === false) return <>Any {muted("as they come due")}</>;
  return (
    <>
      As published
      {typeof ordered === "object" && (
        <>
          , for each <code>{ordered.key}</code>
        </>
      )}{" "}
      {muted(exhausted === "skip" ? "past those that fail for good" : "and none is passed over")}
    </>
  );
}
