import { useState } from "preact/hooks";
import type { ApiError } from "./api-error.ts";
import { noted } from "./resource.ts";

export interface Sending {
  readonly isSending: boolean;
  /** Why it was not done, the last time. */
  readonly failure: ApiError | undefined;
  /** Sends something. What was wrong before is forgotten. */
  readonly send: (run: () => Promise<void>) => void;
  /** Forgets what went wrong: what is typed now is another thing. */
  readonly forget: () => void;
}

/** What a person sends by a form or a button: whether it is under way, and why it failed. */
export function useSending(): Sending {
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<ApiError | undefined>();
  const attempt = async (run: () => Promise<void>): Promise<void> => {
    setSending(true);
    setFailure(undefined);
    await run().catch((error: unknown) => setFailure(noted(error)));
    setSending(false);
  };
  return {
    isSending,
    failure,
    send: (run) => void attempt(run),
    forget: () => setFailure(undefined),
  };
}
