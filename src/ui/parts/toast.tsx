import { Button } from "./button.tsx";
import { useEffect, useState } from "preact/hooks";
import { shared } from "../api/shared.ts";
import { Status } from "./status.tsx";

interface Toast {
  readonly text: string;
  readonly isError: boolean;
  /** What its button says, and does. */
  readonly act?: readonly [label: string, run: () => void];
}

const toast = shared<Toast | null>(null);
const SHOWN_MS = 6_000;

/** What was done, where the page itself does not show it. @param run what takes it back, or what `label` says */
export function say(text: string, run?: () => void, label = "Undo"): void {
  toast.value = { text, isError: false, ...(run === undefined ? {} : { act: [label, run] }) };
}

/** What went wrong; it stays until somebody closes it. */
export function sayError(error: unknown): void {
  toast.value = { text: error instanceof Error ? error.message : String(error), isError: true };
}

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
