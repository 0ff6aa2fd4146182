import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

/** What is done seldom, behind a button. It closes once something was picked, at `Esc`, and with a click beside it. */
export function Menu({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      const menu = details.current;
      if (menu === null || !menu.open) return;
      const isInside = event.target instanceof Node && menu.contains(event.target);
      if (event instanceof KeyboardEvent) {
        if (event.key !== "Escape") return;
        menu.open = false;
        menu.querySelector("summary")?.focus();
      } else if (!isInside || (event.target as Element).closest("li") !== null) menu.open = false;
    };
    addEventListener("click", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("click", close);
      removeEventListener("keydown", close);
    };
  }, []);
  return (
    <details ref={details} class="menu">
      <summary class="btn icon-only" aria-label={label} title={label}>
        <Icon name="more" />
      </summary>
      <ul>{children}</ul>
    </details>
  );
}
