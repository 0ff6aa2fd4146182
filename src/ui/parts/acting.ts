import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, noted } from "../api/resource.ts";
import { shared } from "../api/shared.ts";
import { askBeforeLeaving } from "./route.ts";

export interface Acting {
  readonly isBusy: boolean;
  /** Why it was not done, the last time; nothing, where that was reported. */
  readonly failure: ApiError | undefined;
  /** Does something, after a question where there is one. What was wrong before is forgotten. */
  readonly act: (run: () => Promise<unknown>, question?: Question) => void;
  /** Forgets what went wrong: what is typed now is another thing. */
  readonly forget: () => void;
}

/**
 * What a person does by a form or a button: whether it is under way, and why it failed.
 * @param report says what went wrong, where the component does not show it
 */
export function useActing(report?: (failure: ApiError) => void): Acting {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | undefined>();
  const tryTo = async (run: () => Promise<unknown>, question?: Question): Promise<void> => {
    if (question !== undefined && !(await confirm(question))) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await run();
    } catch (error) {
      (report ?? setFailure)(noted(error));
    } finally {
      setBusy(false);
    }
  };
  return {
    isBusy,
    failure,
    act: (run, question) => void tryTo(run, question),
    forget: () => setFailure(undefined),
  };
}

export interface Question {
  /** Verb and thing: "Skip delivery 91204?" */
  readonly title: ComponentChildren;
  /** What follows from it, counted. */
  readonly body: ComponentChildren;
  /** What the button does: "Skip it". */
  readonly act: string;
  /** The safe button: "Keep waiting". */
  readonly keep?: string;
  readonly danger?: boolean;
  /** A name that has to be typed first, for what cannot be undone. */
  readonly type?: string;
}

interface Asked {
  readonly question: Question;
  readonly answer: (yes: boolean) => void;
  /** What had the focus before. */
  readonly opener: Element | null;
}

export const asked = shared<Asked | null>(null);

/** Asks a person before something that cannot be undone. */
export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    asked.value = {
      question,
      opener: document.activeElement,
      answer: (yes) => {
        asked.value = null;
        resolve(yes);
      },
    };
  });
}

/** Asks before the page leads elsewhere, for as long as there is a question. */
export function useAskBeforeLeaving(question: Question | undefined): void {
  const isAsked = question !== undefined;
  useEffect(
    () => (question === undefined ? undefined : askBeforeLeaving(() => confirm(question))),
    [isAsked],
  );
}

interface Toast {
  readonly text: string;
  readonly isError: boolean;
  /** What its button says, and does. */
  readonly act?: readonly [label: string, run: () => void];
}

export const toast = shared<Toast | null>(null);

/** What was done, where the page itself does not show it. @param run what takes it back, or what `label` says */
export function say(text: string, run?: () => void, label = "Undo"): void {
  toast.value = { text, isError: false, ...(run === undefined ? {} : { act: [label, run] }) };
}

/** What went wrong; it stays until somebody closes it. */
export function sayError(error: unknown): void {
  toast.value = { text: error instanceof Error ? error.message : String(error), isError: true };
}
