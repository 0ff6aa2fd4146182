import type { Identity } from "../domain/token.ts";
import { scopeInWords } from "./scope-words.ts";
import type { Column } from "./table.ts";
import type { Target } from "./target.ts";

/** Who a token makes of its holder, and where. */
export function identityColumns({
  where,
  kind,
  context,
}: Omit<Target, "evreg">): readonly Column<Identity>[] {
  return [
    { title: "You are", of: ({ name }) => name },
    { title: kind === "remote" ? "On" : "On the data folder", of: () => where },
    { title: "Context", of: () => context },
    { title: "You may", of: ({ scopes }) => scopes.map(scopeInWords).join("\n"), lines: true },
    { title: "Expires", of: ({ expires_at }) => expires_at ?? "never" },
    { title: "Data", of: ({ data_id }) => data_id },
  ];
}
