import type { Column } from "../cli/io/table.ts";
import type { Context } from "../config/contexts.ts";
import { withoutUserInfo } from "../domain/formats.ts";

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

export const CONTEXT_LIST: readonly Column<ContextShown>[] = [
  { title: "CONTEXT", value: ({ name }) => name, shrinkTo: 8 },
  { title: "URL", value: ({ url }) => url, shrinkTo: 16 },
  { title: "TOKEN", value: ({ has_token }) => (has_token ? "kept" : "none") },
  { title: "IN USE", value: ({ in_use }) => (in_use ? "yes" : ""), color: () => "green" },
];

export const CONTEXT_RECORD: readonly Column<ContextShown>[] = [
  { title: "Context", value: ({ name }) => name },
  { title: "URL", value: ({ url }) => url },
  { title: "Token", value: ({ has_token }) => (has_token ? "kept" : "none") },
  { title: "In use", value: ({ in_use }) => (in_use ? "yes" : "no") },
];

/** Nothing is kept of it any more. */
export const REMOVED_CONTEXT = CONTEXT_RECORD.slice(0, 2);
