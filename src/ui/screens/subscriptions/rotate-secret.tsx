import { Button } from "../../parts/button.tsx";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RotationMeta, Subscription, SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { send, type Envelope } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { ChoiceField, Form } from "../../parts/form.tsx";
import { isAhead } from "../../records/subscription-state.tsx";
import { Time } from "../../parts/time.tsx";
import { focusAgain } from "../../parts/confirm.tsx";
import { SubscriptionSecret } from "./subscription-secret.tsx";

const OVERLAPS = [
  ["0", "Not at all"],
  ["3600000", "1 hour"],
  ["86400000", "1 day"],
  ["604800000", "7 days"],
  ["2592000000", "30 days"],
] as const;
type Overlap = (typeof OVERLAPS)[number][0];

/** Gives a subscription a new secret, and shows that once. */
export function RotateSecret(props: { readonly subscription: Subscription; readonly close: () => void }) {
  const { subscription, close } = props;
  const { rowid, mode } = subscription;
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    return () => focusAgain(opener);
  }, []);
  useEffect(() => dialog.current?.showModal(), []);
  const until = subscription.previous_secret_until;
  const isRotating = isAhead(until, Date.now());
  const [overlap, setOverlap] = useState<Overlap>(isRotating ? "0" : "86400000");
  const { isBusy, failure, act } = useActing();
  const [answer, setAnswer] = useState<Envelope<SubscriptionWithSecret, RotationMeta> | undefined>();

  const rotate = async (): Promise<void> => {
    const path = `/v1/subscriptions/${rowid}/rotate-secret`;
    const body = { overlap_ms: Number(overlap) };
    setAnswer(await send<SubscriptionWithSecret, RotationMeta>("POST", path, { body }));
  };
  const [isKept, setKept] = useState(false);
  const [wasAsked, setAsked] = useState(false);
  const isHeld = isBusy || (answer !== undefined && !isKept);
  /** A browser lets Esc close a dialog in the end, whatever is said against it. */
  const closed = (): void => {
    if (!isHeld) return close();
    setAsked(true);
    dialog.current?.showModal();
  };
  const ends = answer?.data.previous_secret_until ?? null;
  return (
    <dialog
      ref={dialog}
      class="dialog wider"
      aria-labelledby="rotate"
      onCancel={(event) => {
        if (!isHeld) return;
        event.preventDefault();
        setAsked(true);
      }}
      onClose={closed}
    >
      {answer === undefined ? (
        <Form send={() => void act(rotate)}>
          <h2 id="rotate">
            Rotate the secret of <SubscriptionName of={subscription} />?
          </h2>
          <p class="soft">
            All subscriptions of this application and name get the new one. Until the old one ends, each
            request is signed with both, so the handler can be changed in between.
          </p>
          {isRotating && (
            <p class="warn-text">
              A rotation is under way: the secret before is valid until <Time at={until} />. Another one ends
              both old secrets at once.
            </p>
          )}
          <ChoiceField
            label="The old one lasts"
            value={overlap}
            choices={isRotating ? OVERLAPS.slice(0, 1) : OVERLAPS}
            set={setOverlap}
            error={failure?.message}
          />
          <div class="acts">
            <button type="button" class="btn" autofocus onClick={() => dialog.current?.close()}>
              Keep it
            </button>
            <button class={overlap === "0" ? "btn main danger" : "btn main"} disabled={isBusy}>
              Rotate it
            </button>
          </div>
        </Form>
      ) : (
        <>
          <h2 id="rotate">
            The secret of <SubscriptionName of={subscription} /> is rotated
          </h2>
          <SubscriptionSecret
            secret={answer.data.secret}
            isPush={mode === "push"}
            isKept={isKept}
            keep={() => setKept(true)}
          />
          <p class="soft">
            {ends === null ? (
              "The old secret has ended."
            ) : (
              <>
                The old secret signs as well until <Time at={ends} />; <code>X-Evreg-Signature</code> and the
                bearer carry it until then. Let the handler take both.
              </>
            )}
            {(answer.meta?.rotated ?? 1) > 1 && ` ${answer.meta?.rotated} subscriptions have the new one.`}
          </p>
          {wasAsked && !isKept && (
            <p class="warn-text" role="alert">
              Copy the secret, or say that you have kept it: it is never shown again.
            </p>
          )}
          <div class="acts">
            <Button look="main" run={close} label={isKept ? "Close" : "I have kept it"} />
          </div>
        </>
      )}
    </dialog>
  );
}
