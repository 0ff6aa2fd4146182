import type { ApiError } from "../../api/request.ts";
import { type Acting, useActing } from "../../parts/acting.ts";
import { type FormDraft, useDraft } from "../../api/drafts.ts";
import { type Draft, fieldOf } from "./draft.ts";
import type { Wrong } from "./settings-fields.tsx";

/** What is typed into a form of settings, what is wrong with it, and whether it is being sent. */
export interface SettingsForm {
  readonly draft: FormDraft<Draft>;
  readonly wrong: Wrong | undefined;
  readonly failure: ApiError | undefined;
  readonly isBusy: boolean;
  /** Sends it; what goes wrong stands beside its field, and what was typed is kept. */
  readonly act: Acting["act"];
}

export function useSettingsForm(form: string, start: () => Draft): SettingsForm {
  const draft = useDraft(form, start, (fields) => ({ ...fields, bearer_token: "" }));
  const { isBusy, failure, act, forget } = useActing();
  const wrong = failure && wrongOf(failure);
  return {
    draft: {
      ...draft,
      change: (part) => {
        draft.change(part);
        if (wrong?.field !== undefined && wrong.field in part) forget();
      },
    },
    wrong,
    failure,
    isBusy,
    act,
  };
}

function wrongOf(failure: ApiError): Wrong {
  const field = fieldOf(failure.details);
  // Beside its field the rule alone says it.
  const rule = failure.details["message"];
  const isPlain = field !== undefined && failure.details["field"] === field && typeof rule === "string";
  return { field, message: isPlain ? `It ${rule}.` : failure.message };
}
