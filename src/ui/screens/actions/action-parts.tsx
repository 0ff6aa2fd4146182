import { useEffect, useState } from "preact/hooks";
import {
  type Action,
  type ActionSettings,
  actionState,
  type CompatibilityMode,
  type SchemaVerdict,
} from "../../../domain/action.ts";
import { isReservedName } from "../../../domain/names.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { keepDraft, readDraft } from "../../api/drafts.ts";
import { type ApiError, askJson, noted } from "../../api/resource.ts";
import { may } from "../../api/session.ts";
import { whyNoObject } from "../../parts/json-tokens.ts";
import { linkTo, type Route } from "../../parts/route.ts";
import type { ReadAction } from "../../records/exact-record.ts";

/** What every part of an action's page has. */
export interface PartProps {
  readonly action: ReadAction;
  /** The subscriptions that match it; `undefined` while they are read, and where this token may not read them. */
  readonly subscribers: readonly Subscription[] | undefined;
  readonly route: Route;
}

const STATES = {
  active: { word: "In force", tone: "active", means: "Events can be published." },
  deprecated: { word: "Deprecated", tone: "waiting", means: "Publishers are told to move on." },
  retired: { word: "Retired", tone: "failed", means: "Publishing is refused. Reading and deliveries go on." },
} as const;

/** Whether publishing goes on. @param props.look `badge` beside a title, `st` in a list */
export function ActionState({
  record,
  look,
}: {
  readonly record: ActionSettings;
  readonly look: "badge" | "st";
}) {
  const { word, tone, means } = STATES[actionState(record)];
  return (
    <span class={`${look} ${tone}`} title={means}>
      {word}
    </span>
  );
}

export const PROTECTED: Readonly<Record<CompatibilityMode, string>> = {
  full: "who publishes and who reads",
  producer: "who publishes",
  consumer: "who reads",
  none: "nobody",
};

/** What evreg declares itself nobody changes. */
export const mayChange = (action: Pick<Action, "action" | "application">): boolean =>
  !isReservedName(action.action) && may("write", action.application);

export const actionPath = (name: string): string => `/v1/actions/${encodeURIComponent(name)}`;

/** The form in which a schema of an action is written and checked. */
export const checkForm = (action: string): string => linkTo(["actions", action, "check"]);

export interface CheckFields {
  readonly text: string;
}

/** What somebody began to write in it. */
export const checkedSchema = (action: string): string | undefined =>
  readDraft<CheckFields>(checkForm(action))?.fields.text;

/** Puts a schema into it, such as one of before. */
export function checkSchema(action: string, text: string): void {
  keepDraft<CheckFields>(checkForm(action), { text }, { text: "" });
}

export interface Verdict {
  /** The schema that it is about. */
  readonly text: string;
  readonly verdict?: SchemaVerdict;
  readonly error?: ApiError;
}

/** A person types some five letters a second. */
const PAUSE_MS = 400;

/**
 * What applying a schema would do, asked once nothing was typed for a moment; an answer that comes too late is not waited for.
 * @param text `undefined` asks nothing
 * @param options.revision to compare with that one alone, and in full
 * @returns the last answer, which may be about an earlier text
 */
export function useVerdict(
  action: string,
  text: string | undefined,
  options: { readonly replay?: number; readonly revision?: number } = {},
): Verdict | undefined {
  const [state, setState] = useState<Verdict | undefined>();
  const { replay, revision } = options;
  useEffect(() => {
    if (text === undefined || whyNoObject(text) !== undefined) return undefined;
    const controller = new AbortController();
    const ask = async (): Promise<void> => {
      const others = revision === undefined ? { replay: replay ?? 0 } : { revision, mode: "full" };
      // The schema goes as it was written: no number in it is read here.
      const body = `{"schemata":${text},${JSON.stringify(others).slice(1)}`;
      try {
        const { data } = await askJson<SchemaVerdict>(`${actionPath(action)}/check`, {
          method: "POST",
          text: body,
          signal: controller.signal,
        });
        setState({ text, verdict: data });
      } catch (error) {
        if (!controller.signal.aborted) setState({ text, error: noted(error) });
      }
    };
    const timer = setTimeout(() => void ask(), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [action, text, replay, revision]);
  return state;
}
