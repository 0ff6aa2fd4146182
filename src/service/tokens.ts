import { LOCAL_ACTOR } from "../domain/audit.ts";
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
      const checks = { name: checkLabel, expires_at: checkTime };
      const { name, scopes, expires_at } = readBody<NewToken>(NEW_TOKEN, input, checks);
      const checked = scopes.map((scope, index) => checkScope(`scopes[${index}]`, scope));
      const expiresAtMs = expires_at === undefined ? undefined : parseIsoTime(expires_at);
      if (expiresAtMs !== undefined && expiresAtMs <= clock.now()) {
        throw invalidField("expires_at", "must be in the future", expires_at);
      }
      const token = mintToken((count) => random.bytes(count));
      const record = { name, scopes: [...new Set(checked)], hash: hashToken(token), expiresAtMs };
      const created = await store.tokens.create(
        omitUndefined<TokenRecord>(record),
        clock.now(),
        access.actor,
      );
      return { data: { ...created, token } };
    },
    async revoke(id) {
      access.require("admin");
      checkId(id);
      // The last admin token can only be revoked on the data folder: without it, none can be made over the network.
      const options = { managed: access.principal !== LOCAL_OWNER, by: access.actor };
      const revoked = existing(await store.tokens.revoke(id, clock.now(), options), "token", id);
      tokens.evict(id);
      return { data: revoked };
    },
  };
}

/**
 * As `Service.bootstrapToken`. `keep` is called first: with a token stored that nobody knows, no later start would make
 * another.
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
  const record = { name: "bootstrap", scopes: ["admin"], hash: hashToken(token) };
  await store.tokens.create(record, clock.now(), LOCAL_ACTOR);
  return true;
}
