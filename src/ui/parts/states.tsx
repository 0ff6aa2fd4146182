import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ApiError } from "../api/api-error.ts";
import { linkTo } from "../shell/route.ts";
import { Command } from "./copy.tsx";
import { type State, Status } from "./status.tsx";
import { sizeText } from "./texts.ts";

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
    <Empty
      title={`No ${what} matches`}
      button={
        <a class="btn" href={linkTo([screen])}>
          Clear the filter
        </a>
      }
    >
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

/** Stands for a payload that is read only when somebody asks for it. */
export function LargePayload(props: {
  readonly title: string;
  readonly bytes: number;
  readonly show: () => void;
}) {
  return (
    <section class="panel codebox" aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        <span class="aside">{sizeText(props.bytes)}</span>
      </header>
      <div class="empty">
        <p>It is large, so it has not been loaded.</p>
        <button class="btn" onClick={props.show}>
          Load and show it
        </button>
      </div>
    </section>
  );
}

const SKELETON_AFTER_MS = 400;

/**
 * What stands where an answer will stand: nothing at first, then grey rows as high as those to come, or why there is none.
 * @param props.rows how many rows
 */
export function Waiting({
  error,
  reload,
  rows = 8,
}: {
  readonly error: ApiError | undefined;
  readonly reload: () => void;
  readonly rows?: number;
}) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), SKELETON_AFTER_MS);
    return () => clearTimeout(timer);
  }, []);
  if (error !== undefined) return <Failed error={error} reload={reload} />;
  return (
    <div class={late ? "skeleton late" : "skeleton"} role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} />
      ))}
    </div>
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
          <button class="btn" onClick={reload}>
            Try again
          </button>
        ) : undefined
      }
    >
      {error.message}
      {error.status === 0 && " The page tries again by itself."}
    </Say>
  );
}
