import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { shared } from "../api/shared.ts";
import { EXACT, Form } from "./form.tsx";
import { askBeforeLeaving, route } from "./route.ts";

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

const asked = shared<Asked | null>(null);

/** Gives the focus back after a dialog: where its opener is in a menu that has closed, the menu's button gets it. */
function focusAgain(opener: Element | null): void {
  const isShown = opener?.checkVisibility() === true;
  const target = isShown ? opener : opener?.closest("details")?.querySelector("summary");
  if (target instanceof HTMLElement) target.focus();
}

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

export function Confirm() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const now = asked.use();
  const at = route.use();
  // The question was about a screen that is left.
  useEffect(() => () => asked.value?.answer(false), [at]);
  useEffect(() => {
    setTyped("");
    if (now !== null && dialog.current?.open === false) dialog.current.showModal();
  }, [now]);
  useLayoutEffect(() => (now === null ? undefined : () => focusAgain(now.opener)), [now]);
  if (now === null) return null;
  const { question, answer } = now;
  const mayAct = question.type === undefined || typed === question.type;
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="asked" onCancel={() => answer(false)}>
      <Form
        class=""
        send={() => {
          if (mayAct) answer(true);
        }}
      >
        <h2 id="asked">{question.title}</h2>
        <div class="soft">{question.body}</div>
        {question.type !== undefined && (
          <label class="labelled">
            <span>
              Type <code>{question.type}</code> to go on
            </span>
            <span class="field">
              <input value={typed} {...EXACT} onInput={(event) => setTyped(event.currentTarget.value)} />
            </span>
          </label>
        )}
        <div class="acts">
          <button type="button" class="btn" autofocus onClick={() => answer(false)}>
            {question.keep ?? "Cancel"}
          </button>
          <button class={question.danger === true ? "btn main danger" : "btn main"} disabled={!mayAct}>
            {question.act}
          </button>
        </div>
      </Form>
    </dialog>
  );
}
