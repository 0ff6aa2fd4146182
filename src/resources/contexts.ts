import type { Context } from "../config/contexts.ts";
import { withoutUserInfo } from "../domain/formats.ts";
import { type Fields, listColumns, recordColumns } from "./resource.ts";

/** A context as it is shown: never with its token. */
export interface ContextShown {
  readonly name: string;
  readonly url: string;
  readonly has_token: boolean;
  readonly in_use: boolean;
}

export function shownContext({ name, url, token }: Context, inUse: string | undefined): ContextShown {
  return { name, url: withoutUserInfo(url), has_token: token !== undefined, in_use: name === inUse };
}

const FIELDS: Fields<ContextShown> = {
  name: "Context",
  url: "URL",
  has_token: { title: "Token", show: ({ has_token }) => (has_token ? "kept" : "none") },
  in_use: { title: "In use", show: ({ in_use }) => (in_use ? "yes" : "no") },
};

export const CONTEXT_LIST = listColumns(FIELDS, {
  name: { shrinkTo: 8 },
  url: { shrinkTo: 16 },
  has_token: {},
  in_use: { value: ({ in_use }) => (in_use ? "yes" : ""), color: () => "green" },
});

export const CONTEXT_RECORD = recordColumns(FIELDS);

/** Nothing is stored of it any more. */
export const REMOVED_CONTEXT = CONTEXT_RECORD.slice(0, 2);
