import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Action } from "../../domain/action.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { useResource } from "../api/resource.ts";
import { asked, toast } from "../parts/acting.ts";
import { EXACT, Form } from "../parts/form.tsx";
import { keysNow, lettersAct, setLetters } from "../parts/keys.ts";
import { Button } from "../parts/layout.tsx";
import { goTo, linkTo, route } from "../parts/route.ts";
import { Status } from "../parts/states.tsx";
import { isOffered, SCREENS } from "./screens.tsx";

/** Gives the focus back after a dialog: where its opener is in a menu that has closed, the menu's button gets it. */
function focusAgain(opener: Element | null): void {
  const isShown = opener?.checkVisibility() === true;
  const target = isShown ? opener : opener?.closest("details")?.querySelector("summary");
  if (target instanceof HTMLElement) target.focus();
}

/** The question that is asked now. */
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

const SHOWN_MS = 6_000;

/** What was done or went wrong, for a while. */
export function Toasts() {
  const shown = toast.use();
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (shown === null || shown.isError || held) return undefined;
    const timer = setTimeout(() => (toast.value = null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [shown, held]);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown !== null && (
        <div
          class="toast"
          onMouseEnter={() => setHeld(true)}
          onMouseLeave={() => setHeld(false)}
          onFocusIn={() => setHeld(true)}
          onFocusOut={() => setHeld(false)}
        >
          {shown.isError && <Status state="failed" word={false} />}
          <span>{shown.text}</span>
          {shown.act !== undefined && (
            <Button
              look="bare"
              run={() => {
                toast.value = null;
                shown.act?.[1]();
              }}
              label={shown.act[0]}
            />
          )}
          <button class="btn bare icon-only" aria-label="Close" onClick={() => (toast.value = null)}>
            ×
          </button>
        </div>
      )}
    </div>
  );
}

interface Goal {
  readonly text: string;
  readonly kind: string;
  readonly link: string;
}

const MOST_SHOWN = 12;

/** What a person looks for by name or number: screens, actions, subscriptions, an event, a delivery. */
export function Find({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const actions = useResource<readonly Action[]>("/v1/actions").answer?.data ?? [];
  const subscriptions = useResource<readonly Subscription[]>("/v1/subscriptions").answer?.data ?? [];
  useEffect(() => dialog.current?.showModal(), []);

  const goals: readonly Goal[] = [
    ...SCREENS.filter(isOffered).map(({ title, path }) => ({
      text: title,
      kind: "Screen",
      link: linkTo([path]),
    })),
    ...actions.map(({ action }) => ({ text: action, kind: "Action", link: linkTo(["actions", action]) })),
    ...subscriptions.map(({ rowid, application, subscription, action }) => ({
      text: `${application}/${subscription} ${action}`,
      kind: "Subscription",
      link: linkTo(["subscriptions", rowid]),
    })),
  ];
  const wanted = text.trim().toLowerCase();
  const numbered: readonly Goal[] = /^#?\d+$/.test(wanted)
    ? ["events", "deliveries"].map((path) => {
        const id = wanted.replace("#", "");
        return { text: id, kind: path === "events" ? "Event" : "Delivery", link: linkTo([path, id]) };
      })
    : [];
  const words = wanted.split(/\s+/);
  const hits = [
    ...numbered,
    ...goals.filter((goal) => words.every((word) => goal.text.toLowerCase().includes(word))),
  ].slice(0, MOST_SHOWN);
  const open = (goal: Goal | undefined): void => {
    if (goal === undefined) return;
    dialog.current?.close();
    goTo(goal.link);
  };
  return (
    <dialog ref={dialog} class="dialog palette" aria-label="Find or go to" onClose={close}>
      <div class="field">
        <input
          autofocus
          value={text}
          role="combobox"
          aria-expanded="true"
          aria-controls="found"
          aria-activedescendant={hits[at] === undefined ? undefined : `found-${at}`}
          aria-label="Find or go to"
          placeholder="A name, or the number of an event or delivery"
          {...EXACT}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
            if (step !== 0) {
              event.preventDefault();
              setAt((before) => Math.min(Math.max(0, before + step), hits.length - 1));
            } else if (event.key === "Enter") open(hits[at]);
          }}
        />
      </div>
      <ul id="found" role="listbox" aria-label="Found">
        {hits.map((goal, index) => (
          <li
            key={goal.link}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => open(goal)}
            onMouseMove={() => setAt(index)}
          >
            <span class="grow">{goal.text}</span>
            <span class="muted">{goal.kind}</span>
          </li>
        ))}
      </ul>
      {hits.length === 0 && <p class="muted">Nothing has that name.</p>}
    </dialog>
  );
}

/** What `keysNow` does not know: browsers do these by themselves. */
const OTHER_KEYS = [
  { key: "Enter", what: "Open" },
  { key: "Esc", what: "Close" },
];

/** All keys that act on the screen that is shown. */
export function KeyHelp({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="keys" onClose={close}>
      <h2 id="keys">Keys</h2>
      <dl class="keys">
        {[...keysNow(), ...OTHER_KEYS].map(({ key, what }) => (
          <div key={key}>
            <dt>
              {(key === "find" ? "Ctrl K" : key).split(" ").map((part) => (
                <kbd key={part}>{part.length === 1 ? part.toUpperCase() : part}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={lettersAct.use()}
          onChange={(event) => setLetters(event.currentTarget.checked)}
        />
        Single letters act
      </label>
      <div class="acts">
        <button class="btn" autofocus onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
