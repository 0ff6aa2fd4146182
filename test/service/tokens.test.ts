import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newEvent, refusal } from "../contract/harness.ts";
import { mintToken } from "../../src/domain/token-secret.ts";
import { LOCAL_OWNER, type Principal } from "../../src/domain/token.ts";
import type { Store } from "../../src/store/store.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";

let local: LocalService;
/** Calls of `tokens.find` and `tokens.recordUse` that reached the store. */
let lookups = 0;
let touches: number[] = [];
/** Resolves once the last use is stored. */
let touched: Promise<void>;
/** What answers of `tokens.find` wait for. */
let held: Promise<void>;

function counting(store: Store): Store {
  const { tokens } = store;
  return {
    ...store,
    tokens: {
      ...tokens,
      async find(hash) {
        lookups += 1;
        const token = await tokens.find(hash);
        await held;
        return token;
      },
      recordUse(id, atMs) {
        touches.push(id);
        touched = tokens.recordUse(id, atMs);
        return touched;
      },
    },
  };
}

beforeEach(async () => {
  lookups = 0;
  touches = [];
  held = Promise.resolve();
  local = await openLocalService({ around: counting });
});
afterEach(() => local.close());

const create = async (scopes = ["read"], expires_at?: string) =>
  (
    await local.evreg.tokens.create({
      name: "n",
      scopes,
      ...(expires_at === undefined ? {} : { expires_at }),
    })
  ).data;

const portOf = async (token: string) => local.service.as((await local.service.tokens.authenticate(token))!);
it("stores the first token once where two nodes begin with the same one at the same moment", async () => {
  const token = mintToken((length) => Buffer.alloc(length, 1));
  const start = () => local.service.bootstrapToken(() => undefined, token);
  await Promise.all([start(), start()]);
  expect((await local.evreg.tokens.list()).data).toMatchObject([{ name: "bootstrap" }]);
});

it("lets all who use one token share what one caller may have, also once it is read anew", async () => {
  const { token } = await create();
  const own = await portOf(token);
  await local.evreg.tokens.revoke((await create()).rowid);
  const again = await portOf(token);
  for (let opened = 0; opened < 100; opened += 1) await [own, again][opened % 2]!.stream();
  for (const port of [own, again]) {
    await expect(port.stream()).rejects.toMatchObject({ code: "rate_limited", details: { held: 100 } });
  }
  await (await portOf((await create()).token)).stream();
});

describe("authenticating", () => {
  it("finds whose a token is, and reads the store once", async () => {
    const { token } = await create(["read", "publish:billing"]);
    const first = await local.service.tokens.authenticate(token);
    expect(first).toEqual({
      tokenId: 1,
      name: "n",
      scopes: ["read", "publish:billing"],
      expires_at: null,
    });
    expect(await local.service.tokens.authenticate(token)).toBe(first);
    expect(lookups).toBe(1);
  });

  it("never reads the store for what cannot be a token", async () => {
    const { token } = await create();
    for (const text of [
      "",
      "x",
      `${token.slice(0, -1)}-`,
      token.replace(/.$/, (c) => (c === "0" ? "1" : "0")),
    ]) {
      expect(await local.service.tokens.authenticate(text)).toBeUndefined();
    }
    expect(lookups).toBe(0);
  });

  it("is looked at again before what a consumer has waited for is given", async () => {
    const { evreg, clock } = local;
    await evreg.actions.create({ application: "crm", action: "a.b", schemata: {} });
    const names = { application: "crm", subscription: "q", action: "a.b", mode: "pull" } as const;
    const { rowid: id } = (await evreg.subscriptions.create(names)).data;
    const { rowid, token } = await create(["listen"]);
    const { subscriptions } = local.service.as((await local.service.tokens.authenticate(token))!);
    const waits = refusal(subscriptions.claim(id, { wait_ms: 20_000 }), "unauthorized");
    await evreg.subscriptions.claim(id);
    await evreg.tokens.revoke(rowid);
    await evreg.events.publish(newEvent({}, "a.b"));
    await clock.advance(10);
    await waits;
    expect((await evreg.subscriptions.claim(id)).data).toMatchObject([{ attempt: 1 }]);
  });

  it("does not come back through a look-up that began before the token was revoked", async () => {
    const { token, rowid } = await create();
    const { promise, resolve: release } = Promise.withResolvers<void>();
    held = promise;
    const early = local.service.tokens.authenticate(token);
    await local.evreg.tokens.revoke(rowid);
    release();
    expect(await early).toBeUndefined();
    expect(await local.service.tokens.authenticate(token)).toBeUndefined();
  });

  it("caches a limited number of tokens", async () => {
    const { token } = await create();
    await local.service.tokens.authenticate(token);
    const others = await Promise.all(Array.from({ length: 1_000 }, () => create()));
    for (const other of others) await local.service.tokens.authenticate(other.token);
    lookups = 0;
    expect(await local.service.tokens.authenticate(token)).toBeDefined();
    expect(lookups).toBe(1);
  });
});

describe("the last use", () => {
  it("is listed", async () => {
    const { token, rowid } = await create();
    await local.clock.advance(10_000);
    await local.service.tokens.authenticate(token);
    await touched;
    const record = (await local.evreg.tokens.list()).data.find((each) => each.rowid === rowid);
    expect(record?.last_used_at).toBe("2026-01-01T00:00:10.000Z");
  });

  it("is stored at most once a minute for each token", async () => {
    const tokens = [await create(), await create()];
    const use = async (): Promise<void> => {
      for (const { token } of tokens) await local.service.tokens.authenticate(token);
    };
    for (let second = 0; second < 60; second++) {
      await use();
      await local.clock.advance(1_000);
    }
    expect(touches).toEqual(tokens.map(({ rowid }) => rowid));
    await use();
    expect(touches).toHaveLength(4);
  });

  it("fails no request when it cannot be stored", async () => {
    const { token } = await create();
    await local.service.tokens.authenticate(token);
    await touched;
    await local.store.close();
    await local.clock.advance(60_000);
    expect(await local.service.tokens.authenticate(token)).toBeDefined();
    await expect(touched).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("the last admin token", () => {
  const admin: Principal = { name: "n", scopes: ["admin"] };

  it("cannot be revoked by those who need one", async () => {
    const { tokens } = local.service.as(admin);
    const last = await create(["admin"]);
    await create(["admin:billing"]);
    await create(["admin"], "2026-01-01T00:01:00Z");
    await local.clock.advance(60_000);
    await refusal(tokens.revoke(last.rowid), "conflict");
    const next = await create(["admin"]);
    expect((await tokens.revoke(last.rowid)).data.rowid).toBe(last.rowid);
    await refusal(tokens.revoke(next.rowid), "conflict");
    await refusal(tokens.revoke(999), "not_found");
  });

  it("can be revoked by whoever holds the data folder", async () => {
    const { rowid } = await create(["admin"]);
    expect((await local.service.as(LOCAL_OWNER).tokens.revoke(rowid)).data.rowid).toBe(rowid);
  });
});
