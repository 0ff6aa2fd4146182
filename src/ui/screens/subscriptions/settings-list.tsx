import { capital } from "../../parts/texts.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { retryDefaults } from "../../api/identity.ts";
import { indentedLines } from "../../parts/json-tokens.ts";
import { Definitions, type Facts } from "../../parts/layout.tsx";
import { Lines } from "../../parts/json-view.tsx";
import { isAhead } from "../../records/subscription-state.tsx";
import { Relative, Time } from "../../parts/time.tsx";
import type { ReadSubscription } from "../../records/exact-record.ts";
import { formOf } from "./plain-settings.ts";
import { retriesSentence, waitsText } from "./retry-words.ts";

const BEARER_WORDS = { secret: "The secret", own: "A value of its own", none: "None" } as const;

/** What a subscription is told, in words; with what goes for all where it says nothing. */
export function SettingsList({ subscription }: { readonly subscription: ReadSubscription }) {
  const { mode, max_retries: retries } = subscription;
  const usual = retryDefaults();
  const waits = subscription.retry_schedule ?? usual.retry_schedule;
  return (
    <Definitions
      kind="settings"
      of={{
        Retries: (
          <>
            {retriesSentence(retries, waits, usual.disable_after_ms)}{" "}
            {retries > 1 && <span class="muted">The waits: {waitsText(retries, waits)}</span>}
          </>
        ),
        Order: <Order subscription={subscription} />,
        ...plainRows(subscription, "Order and pace"),
        Filter:
          subscription.filter === null ? (
            <Unset words="None: all events are sent" />
          ) : (
            <Lines lines={indentedLines(subscription.exactText)} tall={false} />
          ),
        ...(mode === "push"
          ? {
              ...plainRows(subscription, "What is sent along"),
              Secret: <SecretTimes until={subscription.previous_secret_until} />,
              Bearer: BEARER_WORDS[subscription.bearer],
            }
          : { "Last claim": <LastClaim at={subscription.last_claim_at} /> }),
        Created: <Time at={subscription.timestamped} />,
      }}
    />
  );
}

function LastClaim({ at }: { readonly at: string | null }) {
  return at === null ? <Unset words="None yet" /> : <Relative at={at} />;
}

function Unset({ words }: { readonly words: string }) {
  return <span class="muted">{words}</span>;
}

/** The settings of a group of the form, each as its description says it. */
function plainRows(subscription: Subscription, group: string): Facts {
  const rows = formOf(subscription.mode, group).map(
    ({ name, title = name, kind, unset = "none", words = String }) => {
      const value = subscription[name];
      if (value === null) return [title, <Unset key={name} words={capital(unset)} />];
      const text = words(kind.write(value));
      if (kind.hasLines !== true) return [title, capital(text)];
      const lines = text.split("\n").map((line) => (
        <div key={line}>
          <code class="break">{line}</code>
        </div>
      ));
      return [title, lines];
    },
  );
  return Object.fromEntries(rows) as Facts;
}

function Order(props: { readonly subscription: Subscription }) {
  const {
    subscription: { ordered, on_exhausted: exhausted },
  } = props;
  if (ordered === false) {
    return (
      <>
        Any <span class="muted">as they come due</span>
      </>
    );
  }
  return (
    <>
      As published
      {typeof ordered === "object" && (
        <>
          , for each <code>{ordered.key}</code>
        </>
      )}{" "}
      <span class="muted">
        {exhausted === "skip" ? "past those that fail for good" : "and none is passed over"}
      </span>
    </>
  );
}

function SecretTimes({ until }: { readonly until: string | null }) {
  if (!isAhead(until, Date.now())) return <>One</>;
  return (
    <>
      Rotating{" "}
      <span class="muted">
        the old one signs too until <Time at={until} />
      </span>
    </>
  );
}
