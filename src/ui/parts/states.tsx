import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DeliveryStatus } from "../../domain/delivery.ts";
import type { SubscriptionState } from "../../domain/words/attention.ts";
import type { ApiError } from "../api/resource.ts";
import { Command } from "./copy.tsx";
import { Button } from "./layout.tsx";
import { capital, numberText } from "./values.tsx";

export type State = DeliveryStatus | SubscriptionState;

/** A drawing of 12 units: what is filled, the lines, and the lines cut out of what is filled. */
interface Shape {
  readonly fill?: string;
  readonly line?: string;
  readonly cut?: string;
}

const RING = "M1.25 6a4.75 4.75 0 1 0 9.5 0 4.75 4.75 0 1 0-9.5 0";
const BARS = {
  fill: "M2.9 2A1.1 1.1 0 0 1 5.1 2v8a1.1 1.1 0 0 1-2.2 0zM6.9 2A1.1 1.1 0 0 1 9.1 2v8a1.1 1.1 0 0 1-2.2 0z",
};

/** A shape of its own for each state, so that none depends on its colour. */
const SHAPES: Readonly<Record<State, Shape>> = {
  pending: { line: RING },
  delivering: { line: "M10.75 6A4.75 4.75 0 1 1 3.7 1.85", fill: "M4 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0" },
  waiting: { line: `${RING}M6 3.5V6l1.75 1.25` },
  delivered: { fill: "M.5 6a5.5 5.5 0 1 0 11 0 5.5 5.5 0 1 0-11 0", cut: "M3.5 6.2l1.8 1.8 3.3-3.7" },
  failed: {
    fill: "M2.75.75h6.5a2 2 0 0 1 2 2v6.5a2 2 0 0 1-2 2h-6.5a2 2 0 0 1-2-2v-6.5a2 2 0 0 1 2-2z",
    cut: "M4 4l4 4M8 4l-4 4",
  },
  held: BARS,
  filtered: { line: "M1.25 2h9.5L7.25 6.25V10l-2.5-1.25v-2.5z" },
  cancelled: { line: `${RING}M2.75 9.25l6.5-6.5` },
  active: { fill: "M2.5 6a3.5 3.5 0 1 0 7 0 3.5 3.5 0 1 0-7 0" },
  failing: { fill: "M6 .6l5.6 10.2H.4z", cut: "M6 4.4v2.8M6 9v.01" },
  unclaimed: { line: RING, fill: "M4.5 6a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0" },
  slowed: { line: RING, fill: "M6 1.25a4.75 4.75 0 0 0 0 9.5z" },
  blocked: { fill: "M3.7.5h4.6l3.2 3.2v4.6l-3.2 3.2H3.7L.5 8.3V3.7z", cut: "M3.5 6h5" },
  paused: BARS,
  deactivated: { line: "M3.5 3.2a4.25 4.25 0 1 0 5 0M6 1.25V6" },
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
  const { fill, line, cut } = SHAPES[state];
  const shape = (
    <>
      {fill && <path class="fill" d={fill} />}
      {line && <path d={line} />}
      {cut && <path class="cut" d={cut} />}
    </>
  );
  if (word === false) {
    return (
      <svg class={`glyph ${state}`} viewBox="0 0 12 12" role="img" aria-label={words ?? capital(state)}>
        {shape}
      </svg>
    );
  }
  return (
    <span
      class={badge === true ? `st badge ${state}` : `st ${state}`}
      title={words === undefined ? MEANING[state] : undefined}
    >
      <svg viewBox="0 0 12 12" aria-hidden="true">
        {shape}
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
        <span key={state} title={`${numberText(count)} ${state}`}>
          <Status state={state} word={false} />
          {numberText(count)}
        </span>
      ))}
    </span>
  );
}

/**
 * Nothing is there: what it is for, the command, one button.
 * @param props.screen what a screen is called that shows nothing else, for those who hear the page
 */
export function Empty(props: {
  readonly title: string;
  readonly screen?: string;
  readonly children?: ComponentChildren;
  readonly command?: string;
  readonly button?: ComponentChildren;
}) {
  return (
    <div class="empty">
      {props.screen !== undefined && <h1 class="sr">{props.screen}</h1>}
      <h2>{props.title}</h2>
      {props.children !== undefined && <div>{props.children}</div>}
      {props.command !== undefined && <Command text={props.command} />}
      {props.button}
    </div>
  );
}

/** A state in words: what it is, since when, what comes next, and one button. */
export function Say(props: {
  readonly state: State;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly button?: ComponentChildren;
}) {
  return (
    <div class={`say ${props.state}`}>
      <Status state={props.state} word={false} />
      <div class="what">
        <strong>{props.title}</strong>
        {props.children !== undefined && <p>{props.children}</p>}
      </div>
      {props.button}
    </div>
  );
}

const SKELETON_AFTER_MS = 400;

/** What is read, as far as it matters to who waits for it. */
interface Read {
  readonly error: ApiError | undefined;
  readonly reload: () => void;
}

/**
 * What stands where an answer will stand: nothing at first, then grey rows as high as those to come, or why there is none.
 * @param props.screen see `Empty`
 */
export function Waiting(props: { readonly source: Read; readonly rows?: number; readonly screen?: string }) {
  const { source, rows = 8, screen } = props;
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  const shown =
    source.error !== undefined ? (
      <Failed error={source.error} reload={source.reload} />
    ) : (
      <div class={late ? "skeleton late" : "skeleton"} role="status" aria-busy="true" aria-label="Loading">
        {Array.from({ length: rows }, () => (
          <div />
        ))}
      </div>
    );
  if (screen === undefined) return shown;
  return (
    <div class="panel">
      <h1 class="sr">{screen}</h1>
      {shown}
    </div>
  );
}

/** What was read, in a panel, once it is there; why there is nothing newer stands beneath. */
export function Loaded<T>(props: {
  readonly source: Read & { readonly answer: { readonly data: T } | undefined };
  readonly rows?: number;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { source, rows = 8, children } = props;
  return (
    <>
      <div class="panel">
        {source.answer === undefined ? <Waiting source={source} rows={rows} /> : children(source.answer.data)}
      </div>
      {source.answer !== undefined && <Failed error={source.error} />}
    </>
  );
}

/** A record beside its list, which on narrow screens stands alone. @param props.back to the list */
export function Detail<T>(props: {
  readonly source: Read & { readonly answer: { readonly data: T } | undefined };
  readonly label: string;
  readonly back: readonly [label: string, link: string];
  readonly children: (data: T) => ComponentChildren;
}) {
  const { source, label, back, children } = props;
  return (
    <article class="detail" tabIndex={-1} aria-label={label}>
      <Button look="bare back" to={back[1]} label={back[0]} />
      {source.answer === undefined ? <Waiting source={source} /> : <>{children(source.answer.data)}</>}
    </article>
  );
}

/** Why something is not shown, and what to do; nothing, where it is. @param props.title of what a person did in vain */
export function Failed(props: {
  readonly error: ApiError | undefined;
  readonly reload?: () => void;
  readonly title?: string;
}) {
  const { error, reload, title } = props;
  if (error === undefined) return null;
  const { status, message } = error;
  const shown = status === 404 ? "Not found" : status === 0 ? "Not connected" : "This cannot be shown";
  const isWorthAnother = reload !== undefined && status !== 404 && status !== 403;
  return (
    <Say
      state="failed"
      title={title ?? shown}
      button={isWorthAnother && <Button run={reload} label="Try again" />}
    >
      {message}
      {status === 0 && title === undefined && " The page tries again by itself."}
    </Say>
  );
}
