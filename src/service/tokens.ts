import { EvregError, invalidField } from "../domain/error.ts";
import { parseIsoTime } from "../domain/formats.ts";
import { checkLabel } from "../domain/names.ts";
import {
  checkScope,
  hashToken,
  isTokenForm,
  LOCAL_OWNER,
  mintToken,
  NEW_TOKEN,
  type NewToken,
  type Scope,
} from "../domain/token.ts";
import type { TokensPort } from "../evreg.ts";
import type { TokenRecord } from "../store/store.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { checkId, checkTime, existing, omitUndefined, readBody } from "./requests.ts";

export function tokensPort(context: ServiceContext, access: Access): TokensPort {
  const { store, clock, random, tokens } = context;
  return {
    async list() {
      access.require("admin");
      await tokens.flush();
      return { data: await store.tokens.list() };
    },
    async create(input) {
      access.require("admin");
      const { name, scopes, expires_at } = readBody(NEW_TOKEN, input, {
        name: checkLabel,
        expires_at: checkTime,
      }) as NewToken;
      const checked: Scope[] = scopes.map((scope, index) => checkScope(`scopes[${index}]`, scope));
      const expiresAtMs = expires_at === undefined ? undefined : parseIsoTime(expires_at);
      if (expiresAtMs !== undefined && expiresAtMs <= clock.now()) {
        throw invalidField("expires_at", "must be in the future", expires_at);
      }
      const token = mintToken((count) => random.bytes(count));
      const record = { name, scopes: [...new Set(checked)], hash: hashToken(token) };
      const created = await store.tokens.create(
        omitUndefined<TokenRecord>({ ...record, expiresAtMs }),
        clock.now(),
      );
      return { data: { ...created, token } };
    },
    async revoke(id) {
      access.require("admin");
      checkId(id);
      // Over the network nobody revokes the last admin token: none could be made any more without stopping the server. Whoever
      // holds the data folder can, and needs none.
      const managedAtMs = access.principal === LOCAL_OWNER ? undefined : clock.now();
      const revoked = existing(await store.tokens.revoke(id, managedAtMs), "token", id);
      tokens.evict(id);
      return { data: revoked };
    },
  };
}

/**
 * Makes the first admin token of a data folder that holds no token at all, and returns whether it did.
 * @param keep puts the token where its owner finds it. Called before it is stored: with one stored that nobody knows, no
 * later start would make another
 * @param requested the token to use instead of a new one
 * @throws `usage` when `requested` has not a token's form; what `keep` throws, and then none is stored
 */
export async function bootstrapToken(
  { store, clock, random }: ServiceContext,
  keep: (token: string) => void,
  requested: string | undefined,
): Promise<boolean> {
  if ((await store.tokens.list()).length > 0) return false;
  if (requested !== undefined && !isTokenForm(requested)) {
    throw new EvregError(
      "usage",
      "The bootstrap token given has not the form of a token: evreg_, 30 letters or digits, and their 6 characters of checksum. Leave it out to have one made.",
    );
  }
  const token = requested ?? mintToken((count) => random.bytes(count));
  keep(token);
  await store.tokens.create({ name: "bootstrap", scopes: ["admin"], hash: hashToken(token) }, clock.now());
  return true;
}
