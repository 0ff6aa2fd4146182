import { useState } from "preact/hooks";
import type { RotationMeta, Subscription, SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { send, type Envelope } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { Button } from "../../parts/button.tsx";
import { ChoiceField, Form } from "../../parts/form.tsx";
import { Head } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Time } from "../../parts/time.tsx";
import { SubscriptionName } from "../../records/delivery-acts.tsx";
import { isAhead } from "../../records/subscription-state.tsx";
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
export function RotateSecret({ subscription }: { readonly subscription: Subscription }) {
  const { rowid, previous_secret_until: until } = subscription;
  const isRotating = isAhead(until, Date.now());
  const [overlap, setOverlap] = useState<Overlap>(isRotating ? "0" : "86400000");
  const { isBusy, failure, act } = useActing();
  const [answer, setAnswer] = useState<Envelope<SubscriptionWithSecret, RotationMeta> | undefined>();
  const leave = linkTo(["subscriptions", rowid]);
  const rotate = async (): Promise<void> => {
    const path = `/v1/subscriptions/${rowid}/rotate-secret`;
    const body = { overlap_ms: Number(overlap) };
    setAnswer(await send<SubscriptionWithSecret, RotationMeta>("POST", path, { body }));
  };
  if (answer !== undefined) {
    const { data, meta } = answer;
    return (
      <SubscriptionSecret
        title={
          <>
            The secret of <SubscriptionName of={subscription} /> is rotated
          </>
        }
        of={data}
        next={<Button to={leave} label="Back to it" />}
      >
        <p>
          {data.previous_secret_until === null ? (
            "The old secret has ended."
          ) : (
            <>
              The old secret signs as well until <Time at={data.previous_secret_until} />;{" "}
              <code>X-Evreg-Signature</code> and the bearer carry it until then. Let the handler take both.
            </>
          )}
          {(meta?.rotated ?? 1) > 1 && ` ${meta?.rotated} subscriptions have the new one.`}
        </p>
      </SubscriptionSecret>
    );
  }
  return (
    <section class="stack narrow" aria-label="New secret">
      <Head
        title={
          <>
            Rotate the secret of <SubscriptionName of={subscription} />
          </>
        }
        lede="All subscriptions of this application and name get the new one. Until the old one ends, each request is signed with both, so the handler can be changed in between."
      />
      {isRotating && (
        <p class="warn-text">
          A rotation is under way: the secret before is valid until <Time at={until} />. Another one ends both
          old secrets at once.
        </p>
      )}
      <Form send={() => void act(rotate)}>
        <div class="form-group">
          <ChoiceField
            label="The old one lasts"
            value={overlap}
            choices={isRotating ? OVERLAPS.slice(0, 1) : OVERLAPS}
            set={setOverlap}
            error={failure?.message}
          />
        </div>
        <div class="form-acts">
          <Button
            look={overlap === "0" ? "main danger" : "main"}
            disabled={isBusy}
            label="Rotate the secret"
          />
          <Button to={leave} label="Keep it" />
        </div>
      </Form>
    </section>
  );
}
