import { Button } from "./button.tsx";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/request.ts";
import { linkTo } from "./route.ts";
import { Command } from "./copy.tsx";
import { type State, Status } from "./status.tsx";

/** Works as it stands, also where there is no action yet. */
export const FIRST_SUBSCRIPTION =
  "evreg subscriptions create --application shop --subscription mail --action '*' --handler https://hooks.example.com/evreg";

/** Nothing is there: what it is for, the command, one button. */
export function Empty(props: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly command?: string;
  readonly button?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{props.title}</h2>
      {props.children !== undefined && <div>{props.children}</div>}
      {props.command !== undefined && <Command text={props.command} />}
      {props.button}
    </div>
  );
}

/**
 * A filter that nothing matches.
 * @param props.what one of the list
 * @param props.screen the path of the list
 */
export function NoMatch({ what, screen }: { readonly what: string; readonly screen: string }) {
  return (
    <Empty title={`No ${what} matches`} button={<Button to={linkTo([screen])} label="Clear the filter" />}>
      None has all of these.
    </Empty>
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
 * @param props.rows how many rows
 */
export function Waiting({ of, rows = 8 }: { readonly of: Read; readonly rows?: number }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (of.error !== undefined) return <Failed error={of.error} reload={of.reload} />;
  return (
    <div class={late ? "skeleton late" : "skeleton"} role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} />
      ))}
    </div>
  );
}

/** What was read, in a panel, once it is there; why there is nothing newer stands beneath. */
export function Loaded<T>(props: {
  readonly of: Read & { readonly answer: { readonly data: T } | undefined };
  readonly rows?: number;
  readonly panel?: string;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { of, rows = 8, panel = "panel", children } = props;
  return (
    <>
      <div class={panel}>
        {of.answer === undefined ? <Waiting of={of} rows={rows} /> : children(of.answer.data)}
      </div>
      {of.error !== undefined && of.answer !== undefined && <Failed error={of.error} />}
    </>
  );
}

/** A record beside its list, which on narrow screens stands alone. @param props.back to the list */
export function Detail<T>(props: {
  readonly of: Read & { readonly answer: { readonly data: T } | undefined };
  readonly label: string;
  readonly back: readonly [label: string, link: string];
  readonly children: (data: T) => ComponentChildren;
}) {
  const { of, label, back, children } = props;
  return (
    <article class="detail" tabIndex={-1} aria-label={label}>
      <Button look="bare back" to={back[1]} label={back[0]} />
      {of.answer === undefined ? <Waiting of={of} /> : <>{children(of.answer.data)}</>}
    </article>
  );
}

/** Why something is not shown, and what to do. */
export function Failed({ error, reload }: { readonly error: ApiError; readonly reload?: () => void }) {
  return (
    <Say
      state="failed"
      title={
        error.status === 404 ? "Not found" : error.status === 0 ? "Not connected" : "This cannot be shown"
      }
      button={
        reload !== undefined && error.status !== 404 && error.status !== 403 ? (
          <Button run={reload} label="Try again" />
        ) : undefined
      }
    >
      {error.message}
      {error.status === 0 && " The page tries again by itself."}
    </Say>
  );
}
