import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

/**
 * What is pressed, to do something or to go somewhere; without either it sends the form that it stands in.
 * @param props.look how it looks besides: `main`, `bare`, `danger`, `push`
 */
export function Button(props: {
  readonly label: string;
  readonly look?: string;
  readonly to?: string;
  readonly run?: () => void | Promise<void>;
  readonly disabled?: boolean;
}) {
  const { label, look, to, run, disabled } = props;
  const kind = look === undefined ? "btn" : `btn ${look}`;
  if (to !== undefined) {
    return (
      <a class={kind} href={to} onClick={() => void run?.()}>
        {label}
      </a>
    );
  }
  return (
    <button
      type={run === undefined ? "submit" : "button"}
      class={kind}
      disabled={disabled}
      onClick={() => void run?.()}
    >
      {label}
    </button>
  );
}

/** A few of which one is picked. */
export function Segments<Choice extends string>(props: {
  readonly label: string;
  readonly choices: Readonly<Record<Choice, string>>;
  readonly picked: Choice;
  readonly pick: (choice: Choice) => void;
}) {
  const { label, choices, picked, pick } = props;
  return (
    <span class="seg" role="group" aria-label={label}>
      {(Object.keys(choices) as Choice[]).map((choice) => (
        <button key={choice} type="button" aria-pressed={choice === picked} onClick={() => pick(choice)}>
          {choices[choice]}
        </button>
      ))}
    </span>
  );
}

/** Closes what opens over the page once something in it was picked, at `Esc`, and with a click beside it. */
export function useClosing(): RefObject<HTMLDetailsElement | null> {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      const menu = details.current;
      if (menu === null || !menu.open) return;
      const target = event.target instanceof Element ? event.target : null;
      if (event instanceof KeyboardEvent) {
        if (event.key !== "Escape") return;
        menu.open = false;
        menu.querySelector("summary")?.focus();
      } else if (!menu.contains(target) || menu.contains(target?.closest("li") ?? null)) menu.open = false;
    };
    addEventListener("click", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("click", close);
      removeEventListener("keydown", close);
    };
  }, []);
  return details;
}

/** What is done seldom, behind a button. */
export function Menu({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const details = useClosing();
  return (
    <details ref={details} class="menu">
      <summary class="btn icon-only" aria-label={label} title={label}>
        <Icon name="more" />
      </summary>
      <ul>{children}</ul>
    </details>
  );
}

/** What is known of a record, by name; what is `undefined` or `false` is left out. */
export type Facts = Readonly<Record<string, ComponentChildren>>;

const knownOf = (facts: Facts): readonly (readonly [name: string, value: ComponentChildren])[] =>
  Object.entries(facts).filter(([, value]) => value !== undefined && value !== false);

/**
 * Above a screen or a record: what it is, what is known of it, and what can be done with it.
 * @param props.isRecord whether it stands beside a list, beneath whose heading it is
 * @param props.badge how it is, beside its name
 */
export function Head(props: {
  readonly title: ComponentChildren;
  readonly isRecord?: boolean;
  readonly badge?: ComponentChildren;
  readonly lede?: ComponentChildren;
  readonly facts?: Facts;
  readonly acts?: ComponentChildren;
}) {
  const { title, isRecord = false, badge, lede, facts, acts } = props;
  return (
    <header class="head">
      <div class="what">
        <div class="row">
          {isRecord ? <h2 class="h1">{title}</h2> : <h1>{title}</h1>}
          {badge}
        </div>
        {lede !== undefined && <p class="lede">{lede}</p>}
        {facts !== undefined && (
          <p class="facts">
            {knownOf(facts).map(([name, value]) => (
              <span key={name} class="break">
                <b>{name}</b> {value}
              </span>
            ))}
          </p>
        )}
      </div>
      {acts && <div class="acts">{acts}</div>}
    </header>
  );
}

/**
 * A part of a screen under a heading.
 * @param props.label what it is for those who hear the page, where the heading says less
 * @param props.note beside the heading
 * @param props.aside at the right end of the same line
 */
export function Section(props: {
  readonly title: string;
  readonly label?: string;
  readonly look?: string;
  readonly note?: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { title, label = title, look, note, aside, children } = props;
  return (
    <section class={look} aria-label={label}>
      <header>
        <h2>{title}</h2>
        {note && <p>{note}</p>}
        {aside && <span class="push row">{aside}</span>}
      </header>
      {children}
    </section>
  );
}

/** Code under a heading, in a panel. */
export const CodeBox = (props: Parameters<typeof Section>[0]) => <Section {...props} look="panel codebox" />;

/** Text as it is, in lines that are wrapped. */
export function Plain({ children }: { readonly children: ComponentChildren }) {
  return (
    <pre class="code plain" tabIndex={0}>
      {children}
    </pre>
  );
}

/** Names with what they mean, a line each. */
export function Definitions({ facts, kind }: { readonly facts: Facts; readonly kind: string }) {
  return (
    <dl class={kind}>
      {knownOf(facts).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** What stands for a value that is not there. */
export const NONE = <span class="muted">–</span>;

/** A sentence whose commands and names stand between backticks. */
export function Words({ text }: { readonly text: string }) {
  return (
    <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}
