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
  { title: "CONTEXT", of: ({ name }) => name, shrinkTo: 8 },
  { title: "URL", of: ({ url }) => url, shrinkTo: 16 },
  { title: "TOKEN", of: ({ has_token }) => (has_token ? "kept" : "none") },
  { title: "IN USE", of: ({ in_use }) => (in_use ? "yes" : ""), tone: () => "green" },
];

export const CONTEXT_RECORD: readonly Column<ContextShown>[] = [
  { title: "Context", of: ({ name }) => name },
  { title: "URL", of: ({ url }) => url },
  { title: "Token", of: ({ has_token }) => (has_token ? "kept" : "none") },
  { title: "In use", of: ({ in_use }) => (in_use ? "yes" : "no") },
];

/** Nothing is kept of it any more. */
export const REMOVED_CONTEXT = CONTEXT_RECORD.slice(0, 2);
