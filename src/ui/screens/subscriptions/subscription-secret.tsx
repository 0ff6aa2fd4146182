import { SecretOnce } from "../../parts/copy.tsx";

/** The secret of a subscription, new or rotated. */
export function SubscriptionSecret(props: {
  readonly secret: string;
  readonly isPush: boolean;
  readonly isKept: boolean;
  readonly keep: () => void;
}) {
  const { secret, isPush, isKept, keep } = props;
  return (
    <SecretOnce
      secret={secret}
      what="the secret"
      otherwise="To have one then, rotate the secret."
      isKept={isKept}
      keep={keep}
    >
      <div>
        <h2>Its secret</h2>
        <p class="soft">
          {isPush
            ? "Keep it where the handler reads it: by it the handler knows that a request is from evreg."
            : "Consumers need a token instead. Keep it in case it changes to other uses."}{" "}
          It is shown this once.
        </p>
      </div>
    </SecretOnce>
  );
}
