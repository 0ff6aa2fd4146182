import type { ComponentChildren } from "preact";
import type { SubscriptionWithSecret } from "../../../domain/subscription.ts";
import { SecretOnce } from "../../parts/copy.tsx";

/**
 * The secret of a subscription, new or rotated.
 * @param props.next buttons, once it is kept
 */
export function SubscriptionSecret(props: {
  readonly title: ComponentChildren;
  readonly of: SubscriptionWithSecret;
  readonly next: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  const { title, of, next, children } = props;
  return (
    <SecretOnce
      title={title}
      secret={of.secret}
      what="the secret"
      otherwise="To have one then, rotate the secret."
      next={next}
    >
      <p>
        {of.mode === "push"
          ? "Keep its secret where the handler reads it: by it the handler knows that a request is from evreg."
          : "Consumers need a token instead. Keep its secret in case it changes to other uses."}{" "}
        It is shown this once.
      </p>
      {children}
    </SecretOnce>
  );
}
