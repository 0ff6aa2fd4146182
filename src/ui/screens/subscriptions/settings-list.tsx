import type { ComponentChildren } from "preact";
import type { Subscription } from "../../../domain/subscription.ts";
import { retryDefaults } from "../../api/identity.ts";
import { indentedLines } from "../../parts/json-tokens.ts";
import { Lines } from "../../parts/json-view.tsx";
import { isAhead } from "../../records/subscription-state.ts";
import { numberText, Relative, Time } from "../../parts/time.tsx";
import { type ReadSubscription, spanText } from "./draft.ts";
import { retriesSentence, waitsText } from "./retry-words.ts";

const BEARER_WORDS = { secret: "The secret", own: "A value of its own", none: "None" } as const;

/** What a subscription is told, in words; with what goes for all where it says nothing. */
export function SettingsList({ subscription }: { readonly subscription: ReadSubscription }) {
  const { mode, max_retries: retries, rate_limit: rate, headers } = subscription;
  const usual = retryDefaults();
  const waits = subscription.retry_schedule ?? usual.retry_schedule;
  const isPush = mode === "push";
  const rows: readonly (readonly [string, ComponentChildren])[] = [
    [
      "Retries",
      <>
        {retriesSentence(retries, waits, usual.disable_after_ms)}{" "}
        {retries > 1 && <span class="muted">The waits: {waitsText(retries, waits)}</span>}
      </>,
    ],
    ["Order", <Order key="order" subscription={subscription} />],
    ...(isPush
      ? ([
          ["Rate", rate === null ? <Unset words="No limit" /> : `At most ${numberText(rate)} a second`],
          ["In flight", mostInFlight(subscription)],
          [
            "Timeout",
            subscription.timeout_ms === null ? (
              <Unset words="That of the server" />
            ) : (
              `${spanText(subscription.timeout_ms)} an attempt`
            ),
          ],
        ] as const)
      : []),
    [
      "Filter",
      subscription.filterText === null ? (
        <Unset words="None: all events are sent" />
      ) : (
        <Lines lines={indentedLines(subscription.filterText)} tall={false} />
      ),
    ],
    ...(isPush
      ? ([
          [
            "Headers",
            headers === null ? (
              <Unset words="None of its own" />
            ) : (
              Object.entries(headers).map(([name, value]) => (
                <div key={name}>
                  <code class="break">
                    {name}: {value}
                  </code>
                </div>
              ))
            ),
          ],
          ["Secret", <SecretTimes key="secret" until={subscription.previous_secret_until} />],
          ["Bearer", BEARER_WORDS[subscription.bearer]],
        ] as const)
      : ([
          [
            "Expires",
            subscription.expires_after_ms === null ? (
              <Unset words="Never" />
            ) : (
              `${spanText(subscription.expires_after_ms)} after the last claim`
            ),
          ],
          [
            "Last claim",
            subscription.last_claim_at === null ? (
              <Unset words="None yet" />
            ) : (
              <Relative at={subscription.last_claim_at} />
            ),
          ],
        ] as const)),
    ["Created", <Time key="created" at={subscription.timestamped} />],
  ];
  return (
    <dl class="settings">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Unset({ words }: { readonly words: string }) {
  return <span class="muted">{words}</span>;
}

function mostInFlight({ max_in_flight: most }: Subscription): ComponentChildren {
  return most === null ? (
    <Unset words="As the server allows to each" />
  ) : (
    `At most ${numberText(most)} at a time`
  );
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
