import { Copy } from "../../parts/copy.tsx";

/** A secret, the one time that it can be seen. */
export function SecretOnce({ secret, isPush }: { readonly secret: string; readonly isPush: boolean }) {
  return (
    <div class="stack tight">
      <div>
        <h2>Its secret</h2>
        <p class="soft">
          {isPush
            ? "Keep it where the handler reads it: by it the handler knows that a request is from evreg."
            : "Consumers need a token instead. Keep it in case it changes to other uses."}{" "}
          It is shown this once.
        </p>
      </div>
      <div class="cmd">
        <code>{secret}</code>
        <Copy text={secret} what="the secret" />
      </div>
    </div>
  );
}
