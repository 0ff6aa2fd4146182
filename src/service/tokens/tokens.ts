import { type Actor, LOCAL_ACTOR } from "../../domain/audit.ts";
import { EvregError, invalidField } from "../../domain/error.ts";
import { parseIsoTime } from "../../domain/formats.ts";
import { checkLabel } from "../../domain/names.ts";
import { hashCode, hashToken, mintToken, randomText, SIGN_IN_CODES } from "../../domain/token-secret.ts";
import {
  CODE_EXCHANGE,
  type CodeExchange,
  checkScope,
  LOCAL_OWNER,
  NEW_TOKEN,
  type NewToken,
  type Principal,
  type TokenWithSecret,
  tokenEndMs,
} from "../../domain/token.ts";
import type { TokensPort } from "../../evreg.ts";
import { toIso } from "../../runtime/clock.ts";
import type { CallerToken, TokenRecord } from "../../store/store.ts";
import { Access } from "../auth.ts";
import type { ServiceContext } from "../context.ts";
import { checkId, checkTime, existing, omitUndefined, readBody } from "../requests.ts";

/** How long a token holds that a browser gets for a code, unless the token that made the code ends sooner. */
const BROWSER_HOLDS_MS = 12 * 60 * 60_000;

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
      const checks = { name: checkLabel, scopes: checkScope, expires_at: checkTime };
      const { name, scopes, expires_at } = readBody<NewToken>(NEW_TOKEN, input, checks);
      const expiresAtMs = expires_at === undefined ? undefined : parseIsoTime(expires_at);
      if (expiresAtMs !== undefined && expiresAtMs <= clock.now()) {
        throw invalidField("expires_at", "must be in the future", expires_at);
      }
      const record = { name, scopes: [...new Set(scopes)], expiresAtMs };
      return { data: await minted(context, omitUndefined(record), access.actor) };
    },
    async createCode() {
      const { name, scopes, tokenId: parentId = 0, callerId = 0 } = access.principal;
      if (parentId !== callerId) {
        throw new EvregError(
          "forbidden",
          "The token of a browser makes no codes. Use the one that it was signed in with.",
        );
      }
      const code = randomText(SIGN_IN_CODES.characters, (count) => random.bytes(count));
      const expiresAtMs = clock.now() + SIGN_IN_CODES.holdMs;
      await store.tokens.create({ name, scopes, hash: hashCode(code), expiresAtMs, parentId }, clock.now());
      return { data: { code, expires_at: toIso(expiresAtMs) } };
    },
    async exchangeCode(input) {
      const { code: text } = readBody<CodeExchange>(CODE_EXCHANGE, input);
      const code = await store.tokens.find(hashCode(text));
      if (code === undefined) throw new EvregError("unauthorized", SIGN_IN_CODES.unknown);
      const maker = await makerOf(context, code);
      // Whoever made the code, at the address that it is used from.
      const by: Actor = { ...new Access(maker).actor, address: access.actor.address };
      try {
        const expiresAtMs = Math.min(clock.now() + BROWSER_HOLDS_MS, tokenEndMs(maker));
        const record = { name: "browser", scopes: maker.scopes, expiresAtMs, parentId: code.rowid };
        return { data: await minted(context, record, by) };
      } catch (error) {
        if (!(error instanceof EvregError) || error.code !== "conflict") throw error;
      }
      // The address with it may be seen, in the list of processes or the browser's history (RFC 6749, 4.1.2).
      await store.tokens.revoke(code.rowid, clock.now(), { by });
      tokens.evict();
      throw new EvregError(
        "unauthorized",
        "This code was used before, so the token that was given for it has been revoked: somebody else may have it. `evreg open` makes another code.",
      );
    },
    async revoke(id) {
      // Everybody may end what it is itself: a browser signs out so.
      if (access.principal.tokenId !== id) access.require("admin");
      checkId(id);
      // The last admin token can only be revoked on the data folder: without it, none can be made over the network.
      const options = { managed: access.principal !== LOCAL_OWNER, by: access.actor };
      const revoked = existing(await store.tokens.revoke(id, clock.now(), options), "token", id);
      tokens.evict();
      return { data: revoked };
    },
  };
}

async function minted(
  { store, clock, random }: ServiceContext,
  record: Omit<TokenRecord, "hash">,
  by: Actor,
): Promise<TokenWithSecret> {
  const token = mintToken((count) => random.bytes(count));
  const created = await store.tokens.create({ ...record, hash: hashToken(token) }, clock.now(), by);
  return { ...created, token };
}

/** @throws EvregError `unauthorized` where the token that the code was made with has ended */
async function makerOf({ tokens }: ServiceContext, code: CallerToken): Promise<Principal> {
  const { name, scopes, parentId } = code;
  if (parentId === null || parentId === 0) return { name, scopes };
  const maker = await tokens.valid(parentId);
  if (maker === undefined) {
    throw new EvregError("unauthorized", "The token that this code was made with holds no longer.");
  }
  return { name, scopes, expires_at: maker.expires_at, tokenId: parentId };
}

/**
 * Does what `Service.bootstrapToken` says. `keep` is called first: with a token stored that nobody knows, no later start
 * would make another.
 */
export async function bootstrapToken(
  { store, clock, random }: ServiceContext,
  keep: (token: string) => void,
  requested: string | undefined,
): Promise<boolean> {
  if ((await store.tokens.list()).length > 0) return false;
  const token = requested ?? mintToken((count) => random.bytes(count));
  keep(token);
  const record = { name: "bootstrap", scopes: ["admin"], hash: hashToken(token) };
  await store.tokens.create(record, clock.now(), LOCAL_ACTOR);
  return true;
}
