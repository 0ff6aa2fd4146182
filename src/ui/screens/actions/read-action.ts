import { linkTo } from "../../parts/route.ts";
import { keepDraft, readDraft } from "../../api/drafts.ts";
import type { Action, ActionRevision } from "../../../domain/action.ts";
import { askText, type Envelope } from "../../api/request.ts";
import { memberText } from "../../parts/json-tokens.ts";

export interface ReadAction extends Action {
  /** The schema as it is stored: no number in it was read. */
  readonly schemaText: string;
}

export interface ReadRevision extends ActionRevision {
  readonly schemaText: string;
}

async function readWithSchema<T>(
  path: string,
  signal: AbortSignal,
): Promise<Envelope<T & { readonly schemaText: string }>> {
  const text = await askText(path, { signal });
  const answer = JSON.parse(text) as Envelope<T>;
  const schemaText = memberText(memberText(text, "data") ?? "{}", "schemata") ?? "{}";
  return { ...answer, data: { ...answer.data, schemaText } };
}

export const readAction = (path: string, signal: AbortSignal): Promise<Envelope<ReadAction>> =>
  readWithSchema<Action>(path, signal);

export const readRevision = (path: string, signal: AbortSignal): Promise<Envelope<ReadRevision>> =>
  readWithSchema<ActionRevision>(path, signal);

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
