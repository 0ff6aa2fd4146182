import type { Token, TokenWithSecret } from "../../domain/token.ts";
import type { Column } from "../table.ts";
import { id } from "./id.ts";

export const TOKEN_LIST: readonly Column<Token>[] = [
  { ...id, of: (token) => token.rowid },
  { title: "NAME", of: (token) => token.name, shrinkTo: 8, whole: true },
  { title: "SCOPES", of: (token) => token.scopes.join(" "), shrinkTo: 8 },
  { title: "EXPIRES", of: (token) => token.expires_at ?? "never", time: true },
  { title: "LAST USED", of: (token) => token.last_used_at ?? "never", time: true },
];

export const TOKEN_RECORD: readonly Column<Token>[] = [
  { title: "ID", of: (token) => token.rowid },
  { title: "Name", of: (token) => token.name },
  { title: "Scopes", of: (token) => token.scopes.join(" ") },
  { title: "Expires", of: (token) => token.expires_at ?? "never" },
  { title: "Created", of: (token) => token.timestamped },
];

export const NEW_TOKEN_RECORD: readonly Column<TokenWithSecret>[] = [
  ...TOKEN_RECORD,
  { title: "Token", of: (token) => token.token },
];
