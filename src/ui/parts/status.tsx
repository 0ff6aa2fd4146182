import { capital } from "./texts.ts";
import type { JSX } from "preact";
import type { SubscriptionState } from "../../domain/words/attention.ts";
import type { DeliveryStatus } from "../../domain/delivery.ts";

export type State = DeliveryStatus | SubscriptionState;

const DISC = <circle class="fill" cx="6" cy="6" r="5.5" />;
const RING = <circle cx="6" cy="6" r="4.75" />;
const BARS = <path d="M4 2v8M8 2v8" stroke-width="2.25" stroke-linecap="round" />;

/** A shape of its own for each state, so that none depends on its colour. */
const SHAPES: Readonly<Record<State, JSX.Element>> = {
  pending: RING,
  delivering: (
    <>
      <circle cx="6" cy="6" r="4.75" stroke-dasharray="20 10" stroke-linecap="round" />
      <circle class="fill" cx="6" cy="6" r="2" />
    </>
  ),
  waiting: (
    <>
      {RING}
      <path d="M6 3.5V6l1.75 1.25" stroke-linecap="round" />
    </>
  ),
  delivered: (
    <>
      {DISC}
      <path class="cut" d="M3.5 6.2l1.8 1.8 3.3-3.7" />
    </>
  ),
  failed: (
    <>
      <rect class="fill" x="0.75" y="0.75" width="10.5" height="10.5" rx="2" />
      <path class="cut" d="M4 4l4 4M8 4l-4 4" />
    </>
  ),
  held: BARS,
  filtered: <path d="M1.25 2h9.5L7.25 6.25V10l-2.5-1.25v-2.5z" stroke-linejoin="round" />,
  cancelled: (
    <>
      {RING}
      <path d="M2.75 9.25l6.5-6.5" />
    </>
  ),
  active: <circle class="fill" cx="6" cy="6" r="3.5" />,
  failing: (
    <>
      <path class="fill" d="M6 .6l5.6 10.2H.4z" stroke-linejoin="round" />
      <path class="cut" d="M6 4.4v2.8M6 9v.01" />
    </>
  ),
  unclaimed: (
    <>
      {RING}
      <path d="M6 6v.01" stroke-width="3" stroke-linecap="round" />
    </>
  ),
  slowed: (
    <>
      {RING}
      <path class="fill" d="M6 1.25a4.75 4.75 0 0 0 0 9.5z" />
    </>
  ),
  blocked: (
    <>
      <path class="fill" d="M3.7.5h4.6l3.2 3.2v4.6l-3.2 3.2H3.7L.5 8.3V3.7z" />
      <path class="cut" d="M3.5 6h5" />
    </>
  ),
  paused: BARS,
  deactivated: <path d="M3.5 3.2a4.25 4.25 0 1 0 5 0M6 1.25V6" stroke-linecap="round" />,
};

/** What each state means, in a sentence. */
export const MEANING: Readonly<Record<State, string>> = {
  pending: "Due, not tried yet.",
  delivering: "An attempt is under way.",
  waiting: "Failed so far, and is tried again.",
  delivered: "The handler has received it.",
  failed: "All retries are used up, or it was given up.",
  held: "Its subscription is paused or deactivated; it is sent once that is active again.",
  filtered: "The filter excluded it; nothing was sent.",
  cancelled: "Its subscription was deleted.",
  active: "Deliveries go out.",
  failing: "Its last attempt failed.",
  unclaimed: "Deliveries wait, and no consumer claims them.",
  slowed: "No attempt before a time that the handler asked for.",
  blocked: "An ordered subscription waits for a person.",
  paused: "A person paused it.",
  deactivated: "evreg gave up on the handler.",
};

/**
 * The glyph of a state and its word.
 * @param props.badge for one beside a title
 * @param props.word `false` where the word stands elsewhere: the glyph has it as its name
 * @param props.words instead of its word, for what is no delivery and no subscription
 */
export function Status(props: {
  readonly state: State;
  readonly badge?: boolean;
  readonly word?: boolean;
  readonly words?: string;
}) {
  const { state, badge, word, words } = props;
  if (word === false) {
    return (
      <svg class={`glyph ${state}`} viewBox="0 0 12 12" role="img" aria-label={words ?? capital(state)}>
        {SHAPES[state]}
      </svg>
    );
  }
  return (
    <span
      class={badge === true ? `st badge ${state}` : `st ${state}`}
      title={words === undefined ? MEANING[state] : undefined}
    >
      <svg viewBox="0 0 12 12" aria-hidden="true">
        {SHAPES[state]}
      </svg>
      {words ?? capital(state)}
    </span>
  );
}

/** How many are in each state: glyphs with counts. */
export function Counts({ counts }: { readonly counts: Readonly<Partial<Record<DeliveryStatus, number>>> }) {
  const present = Object.entries(counts).filter(([, count]) => count > 0) as [DeliveryStatus, number][];
  if (present.length === 0) return <span class="muted">none</span>;
  return (
    <span class="glyphs">
      {present.map(([state, count]) => (
        <span key={state} title={`${count.toLocaleString("en")} ${state}`}>
          <Status state={state} word={false} />
          {count.toLocaleString("en")}
        </span>
      ))}
    </span>
  );
}
