import type { RecordOf } from "../model/field.ts";
import type { TOKEN } from "../model/token.ts";
import { invalidField } from "./error.ts";
import { parseIsoTime } from "./formats.ts";
import { checkLabel, LABEL_PATTERN, NAME_LENGTH } from "./names.ts";
import { inputSchema, label, type ValueOf } from "./request.ts";
import type { RetryDefaults } from "./retry.ts";

export const SCOPE_NAMES = ["publish", "read", "listen", "write", "admin"] as const;
export type ScopeName = (typeof SCOPE_NAMES)[number];

/** `publish`, or limited to one application: `publish:billing`. `write` holds `listen`, and `admin` every other scope. */
export type Scope = string;

export interface Token extends RecordOf<typeof TOKEN> {}

/** Only the answer that creates a token holds it. */
export interface TokenWithSecret extends Token {
  readonly token: string;
}

/** Who makes a request, and what it may do. */
export interface Principal {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** When its token ends; `null` or absent: never. */
  readonly expires_at?: string | null;
  /** Rowid of its token. */
  readonly tokenId?: number;
}

/** The time at which a token ends, in milliseconds since the epoch; `Infinity` for one that never does. */
export function tokenEndMs({ expires_at: expiresAt }: Pick<Principal, "expires_at">): number {
  return expiresAt === undefined || expiresAt === null ? Infinity : (parseIsoTime(expiresAt) ?? 0);
}

/** Who a caller is to the service, and what it may do there. */
export interface Identity extends Required<Omit<Principal, "tokenId">> {
  /** The id of the service's data: it is the same at each of its addresses, and another one after a restore. */
  readonly data_id: string;
  /** What goes for its subscriptions that say nothing else. */
  readonly retries: RetryDefaults;
}

/** A process that holds the data folder itself. */
export const LOCAL_OWNER: Principal = { name: "local", scopes: ["admin"] };

const SCOPE = new RegExp(`^(${SCOPE_NAMES.join("|")})(?::(.+))?$`, "s");

/** `publish` or `publish:billing`; the application's own name may hold colons. `undefined` for anything else. */
export function parseScope(scope: Scope): { name: ScopeName; application?: string } | undefined {
  const [, name, application] = SCOPE.exec(scope) ?? [];
  if (name === undefined) return undefined;
  return { name: name as ScopeName, ...(application === undefined ? {} : { application }) };
}

/** The scopes that hold each one. */
export const HOLDERS: Readonly<Record<ScopeName, readonly ScopeName[]>> = {
  publish: ["publish", "admin"],
  read: ["read", "admin"],
  listen: ["listen", "write", "admin"],
  write: ["write", "admin"],
  admin: ["admin"],
};

/** A scope as it is stored, its application trimmed. @throws `invalid` */
export function checkScope(field: string, value: unknown): Scope {
  if (typeof value !== "string") throw invalidField(field, "must be a string", value);
  const parsed = parseScope(value);
  if (parsed === undefined) {
    const rule = `must be one of ${SCOPE_NAMES.join(", ")}, each alone or limited to an application as in publish:billing`;
    throw invalidField(field, rule, value.slice(0, 200).toWellFormed());
  }
  const { name, application } = parsed;
  return application === undefined ? name : `${name}:${checkLabel(field, application)}`;
}

export const NEW_TOKEN = inputSchema(
  "NewToken",
  {
    name: { ...label, description: "For people: who uses it.", examples: ["shop backend"] },
    scopes: {
      type: "array",
      minItems: 1,
      maxItems: 100,
      items: {
        type: "string",
        pattern: `^(?:${SCOPE_NAMES.join("|")})(?::${LABEL_PATTERN})?$`,
        maxLength: NAME_LENGTH + 8,
      },
      description:
        "publish, read, listen, write or admin; each may be limited to an application, as in publish:billing.",
      examples: [["publish:billing", "read"]],
    },
    expires_at: {
      type: "string",
      format: "date-time",
      description: "ISO 8601 with its zone, in the future. Left out: it never expires.",
      examples: ["2030-01-01T00:00:00Z"],
    },
  },
  ["name", "scopes"],
);
export type NewToken = ValueOf<typeof NEW_TOKEN>;
