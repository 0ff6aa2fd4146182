import type { ComponentChildren } from "preact";

/** What is known of a record, by name; what is `undefined` or `false` is left out. */
export type Facts = Readonly<Record<string, ComponentChildren>>;

/**
 * Above a screen or a record: what it is, what is known of it, and what can be done with it.
 * @param props.isRecord whether it stands beside a list, beneath whose heading it is
 * @param props.badge how it is, beside its name
 * @param props.status the same, before what is known of it
 */
export function Head(props: {
  readonly title: ComponentChildren;
  readonly isRecord?: boolean;
  readonly badge?: ComponentChildren;
  readonly lede?: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly status?: ComponentChildren;
  readonly facts?: Facts;
  readonly acts?: ComponentChildren;
}) {
  const { title, badge, lede, note, status, facts, acts } = props;
  const known = Object.entries(facts ?? {}).filter(([, value]) => value !== undefined && value !== false);
  const isAlone = badge === undefined && lede === undefined && facts === undefined;
  const heading = props.isRecord === true ? <h2 class="h1">{title}</h2> : <h1>{title}</h1>;
  return (
    <header class="head">
      {isAlone && props.isRecord !== true ? (
        <h1 class="what">{title}</h1>
      ) : (
        <div class="what">
          {badge === undefined ? (
            heading
          ) : (
            <div class="row">
              {heading}
              {badge}
            </div>
          )}
          {lede !== undefined && <p class="lede">{lede}</p>}
          {note !== undefined && <p>{note}</p>}
          {facts !== undefined && (
            <p class="facts">
              {status}
              {known.map(([name, value]) => (
                <span key={name} class="break">
                  <b>{name}</b> {value}
                </span>
              ))}
            </p>
          )}
        </div>
      )}
      {acts !== undefined && acts !== false && <div class="acts">{acts}</div>}
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
  readonly note?: ComponentChildren;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { title, label, note, aside, children } = props;
  return (
    <section aria-label={label ?? title}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && note !== false && <p>{note}</p>}
        {aside}
      </header>
      {children}
    </section>
  );
}

/** Code under a heading, in a panel. @param props.acts what can be done with it */
export function CodeBox(props: {
  readonly title: string;
  readonly label?: string;
  readonly note: ComponentChildren;
  readonly acts?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { title, label, note, acts, children } = props;
  return (
    <section class="panel codebox" aria-label={label ?? title}>
      <header>
        <h2>{title}</h2>
        <span class="aside">{note}</span>
        {acts !== undefined && acts !== false && <span class="push row">{acts}</span>}
      </header>
      {children}
    </section>
  );
}

/** Text as it is, in lines that are wrapped. */
export function Plain({ children }: { readonly children: ComponentChildren }) {
  return (
    <pre class="code plain" tabIndex={0}>
      {children}
    </pre>
  );
}

/** Names with what they mean, a line each; what is `undefined` is left out. */
export function Definitions({ of, kind }: { readonly of: Facts; readonly kind: string }) {
  const known = Object.entries(of).filter(([, value]) => value !== undefined);
  return (
    <dl class={kind}>
      {known.map(([name, value]) => (
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
