export interface TokenRecord {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly hash: string;
  readonly expiresAtMs?: number;
}
