export const SCOPE_NAMES = ["publish", "read", "write", "admin"] as const;
export type ScopeName = (typeof SCOPE_NAMES)[number];

/** `publish`, or limited to one application: `publish:billing`. `admin` holds every other scope. */
export type Scope = string;

export interface Token {
  readonly rowid: number;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly timestamped: string;
}

/** The only form in which a token leaves the service: the answer that created it. */
export interface TokenWithSecret extends Token {
  readonly token: string;
}

export interface NewToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** ISO 8601; never when left out. */
  readonly expires_at?: string;
}

/** Who is asking, and for what it may ask. */
export interface Principal {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** When its token ends; `null` or absent: never. */
  readonly expires_at?: string | null;
}

/** Who a caller is to the service, and what it may do there. */
export interface Identity extends Required<Principal> {
  /** Of the data of the service: the same at each of its addresses, and made anew by a restore. */
  readonly data_id: string;
}

/** A process that holds the data folder itself may do everything its owner may. */
export const LOCAL_OWNER: Principal = { name: "local", scopes: ["admin"] };
