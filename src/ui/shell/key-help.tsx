import { useEffect, useRef } from "preact/hooks";
import { keysNow, lettersAct, setLetters } from "../parts/keys.ts";

const named: Readonly<Record<string, string>> = { find: "Ctrl K" };

/** All keys that act on the screen that is shown. */
export function KeyHelp({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="keys" onClose={close}>
      <h2 id="keys">Keys</h2>
      <dl class="keys">
        {keysNow().map(({ key, what }) => (
          <div key={key}>
            <dt>
              {(named[key] ?? key).split(" ").map((part) => (
                <kbd key={part}>{part.length === 1 ? part.toUpperCase() : part}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Enter</kbd>
          </dt>
          <dd>Open</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>Close</dd>
        </div>
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
