import { useState } from "preact/hooks";
import { noted } from "../../api/resource.ts";
import { type Draft, fieldOf } from "./draft.ts";
import type { Wrong } from "./settings-fields.tsx";

/** What is typed into a form of settings, what is wrong with it, and whether it is being sent. */
export function useDraft(start: Draft): {
  readonly draft: Draft;
  readonly change: (change: Partial<Draft>) => void;
  readonly wrong: Wrong | undefined;
  readonly isSending: boolean;
  /** Sends it; what goes wrong stands beside its field, and what was typed is kept. */
  readonly send: (run: () => Promise<void>) => void;
} {
  const [draft, setDraft] = useState(start);
  const [wrong, setWrong] = useState<Wrong | undefined>();
  const [isSending, setSending] = useState(false);
  const attempt = async (run: () => Promise<void>): Promise<void> => {
    setSending(true);
    setWrong(undefined);
    try {
      await run();
    } catch (error) {
      setWrong(wrongOf(error));
    }
    setSending(false);
  };
  return {
    draft,
    change: (part) => {
      setDraft((before) => ({ ...before, ...part }));
      setWrong((before) => (before?.field !== undefined && before.field in part ? undefined : before));
    },
    wrong,
    isSending,
    send: (run) => void attempt(run),
  };
}

function wrongOf(error: unknown): Wrong {
  const failure = noted(error);
  if (failure.status === 0) {
    const message = "No answer came, so it may be saved or not. What you typed is kept here.";
    return { field: undefined, message };
  }
  const field = fieldOf(failure.details);
  // Beside its field the rule alone says it.
  const rule = failure.details["message"];
  const isPlain = field !== undefined && failure.details["field"] === field && typeof rule === "string";
  return { field, message: isPlain ? `It ${rule}.` : failure.message };
}
