import { afterAll, beforeAll, expect, test } from "vitest";
import { type Got, type Harness, startHarness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await startHarness()));
afterAll(() => harness.close());

function makeCode(token?: string, from = harness): Promise<Got> {
  return from.ask("POST /v1/tokens/codes", { token });
}

/** A code is exchanged without a token. */
function exchange(code: string, from = harness): Promise<Got> {
  return from.ask("POST /v1/tokens/exchange", { body: { code } });
}

async function mayRead(token: string): Promise<number> {
  return (await harness.ask("GET /v1/actions", { token })).status;
}

test("a browser exchanges the code of a command for a token, without having one", async () => {
  const { status, body } = await makeCode(await harness.token("read"));
  expect(status).toBe(201);
  const exchanged = await exchange(body.data.code);
  expect(exchanged.status).toBe(201);
  const { token } = exchanged.body.data;
  expect(await mayRead(token)).toBe(200);
  expect((await exchange(body.data.code)).status).toBe(401);
  expect(await mayRead(token)).toBe(401);
  const lines = JSON.stringify(harness.log);
  expect(lines).toContain("/v1/tokens/exchange");
  for (const secret of [token, body.data.code]) expect(lines).not.toContain(secret.slice(8));
});

test("a token may revoke itself, and no other without the scope for it", async () => {
  const { rowid, token } = (await harness.owner.tokens.create({ name: "own", scopes: ["publish:shop"] }))
    .data;
  const revoke = async (id: number) => (await harness.ask(`DELETE /v1/tokens/${id}`, { token })).status;
  expect([await revoke(rowid - 1), await revoke(rowid), await revoke(rowid)]).toEqual([403, 200, 401]);
});

test("a token that was revoked gives no other, and one that ends soon none that holds longer", async () => {
  const expires_at = "2026-01-01T00:01:00.000Z";
  const { data } = await harness.owner.tokens.create({ name: "short", scopes: ["read"], expires_at });
  const [first, second] = [await makeCode(data.token), await makeCode(data.token)];
  expect((await exchange(first.body.data.code)).body.data.expires_at).toBe(expires_at);
  await harness.owner.tokens.revoke(data.rowid);
  expect((await exchange(second.body.data.code)).status).toBe(401);
});

test("the tokens of browsers end with the one that they were made with", async () => {
  const { data } = await harness.owner.tokens.create({ name: "parent", scopes: ["read"] });
  const tokens: string[] = [data.token];
  for (let made = 0; made < 2; made += 1) {
    const { body } = await makeCode(data.token);
    tokens.push((await exchange(body.data.code)).body.data.token);
  }
  const other = await harness.token("read");
  for (const token of tokens) expect(await mayRead(token)).toBe(200);
  await harness.owner.tokens.revoke(data.rowid);
  for (const token of tokens) expect(await mayRead(token)).toBe(401);
  expect(await mayRead(other)).toBe(200);
  const { data: changes } = await harness.owner.audit.list({ limit: 3 });
  const revoked = changes.map(({ change, name }) => `${change} ${name}`);
  expect(revoked).toEqual(["token.revoked browser", "token.revoked browser", "token.revoked parent"]);
});

test("a browser's token is no reason to give up the last one that manages, and leaves the list once it has ended", async () => {
  const own = await startHarness();
  const { rowid } = (await own.owner.tokens.create({ name: "admin", scopes: ["admin"] })).data;
  const { code } = (await own.owner.tokens.createCode()).data;
  const { token } = (await exchange(code!, own)).body.data;
  expect((await own.ask(`DELETE /v1/tokens/${rowid}`, { token })).status).toBe(409);
  own.local.clock.pass(13 * 3_600_000);
  await own.owner.tokens.create({ name: "later", scopes: ["read"] });
  const { data } = await own.owner.tokens.list();
  expect(data.map(({ name }) => name)).toEqual(["admin", "later"]);
  await own.close();
});

test("no code is needed where no token is, and none is made where there is no page", async () => {
  const [open, without] = [await startHarness({ dev: true }), await startHarness({ ui: { enabled: false } })];
  const { status, body } = await makeCode(undefined, open);
  expect([status, body]).toEqual([201, { data: { code: null, expires_at: null } }]);
  expect((await makeCode(await without.token("admin"), without)).status).toBe(409);
  await Promise.all([open.close(), without.close()]);
});
