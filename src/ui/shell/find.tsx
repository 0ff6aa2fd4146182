import { useEffect, useRef, useState } from "preact/hooks";
import type { Action } from "../../domain/action.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { useResource } from "../api/resource.ts";
import { goTo, linkTo } from "../parts/route.ts";
import { EXACT } from "../parts/form.tsx";
import { isOffered, SCREENS } from "./screens.tsx";

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
