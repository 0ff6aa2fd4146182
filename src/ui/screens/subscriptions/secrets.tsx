import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { RotationMeta, Subscription, SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { type Envelope, send } from "../../api/resource.ts";
import { SecretOnce } from "../../parts/copy.tsx";
import { ChoiceField, FormScreen, useForm } from "../../parts/form.tsx";
import { Button } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Time } from "../../parts/values.tsx";
import { isAhead, SubscriptionName } from "../../records/subscription.tsx";

/** The secret of a subscription, new or rotated. */
export function SubscriptionSecret(props: {
  readonly title: ComponentChildren;
  readonly record: SubscriptionWithSecret;
  readonly next: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  const { title, record, next, children } = props;
  return (
    <SecretOnce
      title={title}
      secret={record.secret}
      what="the secret"
      otherwise="To have one then, rotate the secret."
      next={next}
    >
      <p>
        {record.mode === "push"
          ? "Keep its secret where the handler reads it: by it the handler knows that a request is from evreg."
          : "Consumers need a token instead. Keep its secret in case it changes to other uses."}{" "}
        It is shown this once.
      </p>
      {children}
    </SecretOnce>
  );
}

const NOT_AT_ALL = { "0": "Not at all" } as const;
const OVERLAPS = {
  ...NOT_AT_ALL,
  "3600000": "1 hour",
  "86400000": "1 day",
  "604800000": "7 days",
  "2592000000": "30 days",
} as const;

/** Gives a subscription a new secret, and shows that once. */
export function RotateSecret({ subscription }: { readonly subscription: Subscription }) {
  const { rowid, previous_secret_until: until } = subscription;
  const isRotating = isAhead(until, Date.now());
  const leave = linkTo(["subscriptions", rowid]);
  const form = useForm(linkTo(["subscriptions", rowid, "rotate"]), () => ({
    overlap_ms: (isRotating ? "0" : "86400000") as keyof typeof OVERLAPS,
  }));
  const { overlap_ms: overlap } = form.draft.fields;
  const [answer, setAnswer] = useState<Envelope<SubscriptionWithSecret, RotationMeta> | undefined>();
  const rotate = async (): Promise<void> => {
    const path = `/v1/subscriptions/${rowid}/rotate-secret`;
    const body = { overlap_ms: Number(overlap) };
    setAnswer(await send<SubscriptionWithSecret, RotationMeta>("POST", path, { body }));
    form.draft.drop();
  };
  if (answer !== undefined) {
    const { data, meta } = answer;
    return (
      <SubscriptionSecret
        title={<SubscriptionName before="The secret of " record={subscription} after=" is rotated" />}
        record={data}
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
    <FormScreen
      form={form}
      label="New secret"
      title={<SubscriptionName before="Rotate the secret of " record={subscription} />}
      lede="All subscriptions of this application and name get the new one. Until the old one ends, each request is signed with both, so the handler can be changed in between."
      send={rotate}
      look={overlap === "0" ? "main danger" : "main"}
      act="Rotate the secret"
      leave={leave}
    >
      {isRotating && (
        <p class="warn-text">
          A rotation is under way: the secret before is valid until <Time at={until} />. Another one ends both
          old secrets at once.
        </p>
      )}
      <div class="panel pad form-group">
        <ChoiceField
          label="The old one lasts"
          {...form.fieldOf("overlap_ms")}
          choices={isRotating ? NOT_AT_ALL : OVERLAPS}
        />
      </div>
    </FormScreen>
  );
}
