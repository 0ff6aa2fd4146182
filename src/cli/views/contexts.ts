import type { Context } from "../../config/contexts.ts";
import { withoutUserInfo } from "../../domain/formats.ts";
import { linesOf, listOf, type ShownMembers, titled } from "./view.ts";

/** A context as it is shown: never with its token. Of one whose file cannot be read only the name is known. */
export interface ContextShown {
  readonly name: string;
  readonly url: string | null;
  readonly has_token: boolean | null;
  readonly in_use: boolean;
}

export function shownContext({ name, url, token }: Context, inUse: string | undefined) {
  return { name, url: withoutUserInfo(url), has_token: token !== undefined, in_use: name === inUse };
}

const CONTEXT = titled({ name: "Context", url: "URL", has_token: "Token", in_use: "In use" });

const SHOWN: ShownMembers<ContextShown> = {
  has_token: ({ has_token }) => (has_token === null ? null : has_token ? "kept" : "none"),
  in_use: ({ in_use }) => (in_use ? "yes" : "no"),
};

export const CONTEXT_LIST = listOf(CONTEXT, SHOWN, {
  name: { shrinkTo: 8 },
  url: { shrinkTo: 16 },
  has_token: {},
  in_use: { value: ({ in_use }) => (in_use ? "yes" : ""), color: () => "green" },
});

export const CONTEXT_RECORD = linesOf(CONTEXT, SHOWN);

/** Nothing is stored of it any more. */
export const REMOVED_CONTEXT = CONTEXT_RECORD.slice(0, 2);
