import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await startHarness()));
afterAll(() => harness.close());

interface Got {
  readonly status: number;
  readonly body: { readonly data: Record<string, any>; readonly error?: string };
}

async function post(path: string, body?: object, token?: string, from = harness): Promise<Got> {
  const response = await fetch(from.url + path, {
    method: "POST",
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Got["body"] };
}

async function mayRead(token: string): Promise<number> {
  return (await fetch(`${harness.url}/v1/actions`, { headers: { authorization: `Bearer ${token}` } })).status;
}

test("a browser exchanges the code of a command for a token, without having one", async () => {
  const { status, body } = await post("/v1/tokens/codes", undefined, await harness.token("read"));
  expect(status).toBe(201);
  const exchanged = await post("/v1/tokens/exchange", { code: body.data["code"] });
  expect(exchanged.status).toBe(201);
  const { token } = exchanged.body.data;
  expect(await mayRead(token)).toBe(200);
  const again = await post("/v1/tokens/exchange", { code: body.data["code"] });
  expect(again.status).toBe(401);
  expect(await mayRead(token)).toBe(401);
  const lines = JSON.stringify(harness.log);
  expect(lines).toContain("/v1/tokens/exchange");
  for (const secret of [token, body.data["code"]]) expect(lines).not.toContain(secret.slice(8));
});

test("a token may revoke itself, and no other without the scope for it", async () => {
  const { data } = await harness.owner.tokens.create({ name: "own", scopes: ["publish:shop"] });
  const revoke = async (id: number): Promise<number> => {
    const headers = { authorization: `Bearer ${data.token}` };
    return (await fetch(`${harness.url}/v1/tokens/${id}`, { method: "DELETE", headers })).status;
  };
  expect([await revoke(data.rowid - 1), await revoke(data.rowid), await revoke(data.rowid)]).toEqual([
    403, 200, 401,
  ]);
});

test("a code takes a token, also where anybody may publish", async () => {
  const anonymous = await startHarness({ auth: { anonymousPublish: true } });
  expect((await post("/v1/tokens/codes")).status).toBe(401);
  expect((await post("/v1/tokens/codes", undefined, undefined, anonymous)).status).toBe(401);
  await anonymous.close();
});

test("a token that was revoked gives no other, and one that ends soon none that holds longer", async () => {
  const expires_at = "2026-01-01T00:01:00.000Z";
  const { data } = await harness.owner.tokens.create({ name: "short", scopes: ["read"], expires_at });
  const [first, second] = [
    await post("/v1/tokens/codes", undefined, data.token),
    await post("/v1/tokens/codes", undefined, data.token),
  ];
  const exchanged = await post("/v1/tokens/exchange", { code: first.body.data["code"] });
  expect(exchanged.body.data["expires_at"]).toBe(expires_at);
  await harness.owner.tokens.revoke(data.rowid);
  const { status } = await post("/v1/tokens/exchange", { code: second.body.data["code"] });
  expect(status).toBe(401);
});

test("the tokens of browsers end with the one that they were made with", async () => {
  const { data } = await harness.owner.tokens.create({ name: "parent", scopes: ["read"] });
  const tokens: string[] = [data.token];
  for (let made = 0; made < 2; made += 1) {
    const { body } = await post("/v1/tokens/codes", undefined, data.token);
    const exchanged = await post("/v1/tokens/exchange", { code: body.data["code"] });
    tokens.push(exchanged.body.data["token"]);
  }
  const other = await harness.token("read");
  for (const token of tokens) expect(await mayRead(token)).toBe(200);
  await harness.owner.tokens.revoke(data.rowid);
  for (const token of tokens) expect(await mayRead(token)).toBe(401);
  expect(await mayRead(other)).toBe(200);
  const { data: changes } = await harness.owner.audit.list({ limit: 3 });
  expect(changes.map(({ change, name }) => [change, name])).toEqual([
    ["token.revoked", "browser"],
    ["token.revoked", "browser"],
    ["token.revoked", "parent"],
  ]);
});

test("a browser's token is no reason to give up the last one that manages, and leaves the list once it has ended", async () => {
  const own = await startHarness();
  const admin = (await own.owner.tokens.create({ name: "admin", scopes: ["admin"] })).data;
  const { code } = (await own.owner.tokens.createCode()).data;
  const { body } = await post("/v1/tokens/exchange", { code }, undefined, own);
  const headers = { authorization: `Bearer ${body.data["token"]}` };
  const { status } = await fetch(`${own.url}/v1/tokens/${admin.rowid}`, { method: "DELETE", headers });
  expect(status).toBe(409);
  own.local.clock.pass(13 * 3_600_000);
  await own.owner.tokens.create({ name: "later", scopes: ["read"] });
  const { data } = await own.owner.tokens.list();
  expect(data.map(({ name }) => name)).toEqual(["admin", "later"]);
  await own.close();
});

test("no code is needed where no token is, and none is made where there is no page", async () => {
  const [open, without] = [await startHarness({ dev: true }), await startHarness({ ui: { enabled: false } })];
  const answer = await post("/v1/tokens/codes", undefined, undefined, open);
  expect(answer).toEqual({ status: 201, body: { data: { code: null, expires_at: null } } });
  const refused = await post("/v1/tokens/codes", undefined, await without.token("admin"), without);
  expect(refused.status).toBe(409);
  await Promise.all([open.close(), without.close()]);
});
