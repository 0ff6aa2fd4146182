import { linkTo } from "../../parts/route.ts";
import { keepDraft, readDraft } from "../../api/drafts.ts";

export const actionPath = (name: string): string => `/v1/actions/${encodeURIComponent(name)}`;

/** The form in which a schema of an action is written and checked. */
export const checkForm = (action: string): string => linkTo(["actions", action, "check"]);

export interface CheckFields {
  readonly text: string;
}

/** What somebody began to write in it. */
export const checkedSchema = (action: string): string | undefined =>
  readDraft<CheckFields>(checkForm(action))?.fields.text;

/** Puts a schema into it, such as one of before. */
export function checkSchema(action: string, text: string): void {
  keepDraft<CheckFields>(checkForm(action), { text }, { text: "" });
}
