import { useState } from "preact/hooks";
import type { ApiError } from "../api/request.ts";
import { noted } from "../api/resource.ts";
import { confirm, type Question } from "./confirm.tsx";

export interface Acting {
  readonly isBusy: boolean;
  /** Why it was not done, the last time; nothing, where that was reported. */
  readonly failure: ApiError | undefined;
  /** What is wrong with a field of what was sent. */
  readonly errorAt: (field: string) => string | undefined;
  /** Does something, after a question where there is one. What was wrong before is forgotten. Answers whether it was done. */
  readonly act: (run: () => Promise<unknown>, question?: Question) => Promise<boolean>;
  /** Forgets what went wrong: what is typed now is another thing. */
  readonly forget: () => void;
}

/**
 * What a person does by a form or a button: whether it is under way, and why it failed.
 * @param report says what went wrong, where the component does not show it
 */
export function useActing(report?: (failure: ApiError) => void): Acting {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<ApiError | undefined>();
  const act: Acting["act"] = async (run, question) => {
    if (question !== undefined && !(await confirm(question))) return false;
    setBusy(true);
    setFailure(undefined);
    try {
      await run();
      return true;
    } catch (error) {
      (report ?? setFailure)(noted(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  const field = failure?.details["field"];
  return {
    isBusy,
    failure,
    errorAt: (name) => (typeof field === "string" && field.startsWith(name) ? failure?.message : undefined),
    act,
    forget: () => setFailure(undefined),
  };
}
