import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

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
