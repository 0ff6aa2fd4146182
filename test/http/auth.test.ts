import { afterEach, describe, expect, test } from "vitest";
import { startHarness } from "./harness.ts";
import type { Harness } from "./harness.ts";
import { RawConnection } from "./raw-connection.ts";
import type { RawAnswer } from "./raw-connection.ts";

const harnesses: Harness[] = [];
afterEach(() => Promise.all(harnesses.splice(0).map((harness) => harness.close())));

async function started(options: Parameters<typeof startHarness>[0]): Promise<Harness> {
  const harness = await startHarness(options);
  harnesses.push(harness);
  await harness.owner.actions.create({ action: "a.b", application: "app", schemata: {} });
  return harness;
}

async function ask(
  harness: Harness,
  requestLine: string,
  headers: Record<string, string> = {},
  body = "",
): Promise<RawAnswer> {
  const raw = await RawConnection.open(harness.port);
  const all = {
    host: `127.0.0.1:${harness.port}`,
    ...(body === "" ? {} : { "content-type": "application/json", "content-length": String(body.length) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  raw.send(`${requestLine} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  const answer = await raw.answer();
  raw.destroy();
  return answer;
}

const EVENT = '{"action":"a.b","payload":{}}';
const BATCH = `{"events":[${EVENT}]}`;

describe("with tokens", () => {
  test("no token is 401 with WWW-Authenticate, on every route under /v1", async () => {
    const harness = await started({});
    for (const line of [
      "GET /v1/actions",
      "GET /v1/events",
      "GET /v1/subscriptions",
      "GET /v1/deliveries",
      "GET /v1/tokens",
      "GET /v1/whoami",
    ]) {
      const answer = await ask(harness, line);
      expect(answer.status).toBe(401);
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer/);
      expect(JSON.parse(answer.body)).toMatchObject({ code: 401 });
    }
    expect((await ask(harness, "POST /v1/events", {}, EVENT)).status).toBe(401);
    expect((await ask(harness, "GET /health")).status).toBe(200);
    expect((await ask(harness, "GET /openapi.json")).status).toBe(200);
  });

  test("an invalid token is 401, also where none is needed to publish; the scheme is not case-sensitive", async () => {
    const harness = await started({ auth: { anonymousPublish: true } });
    const token = await harness.token("publish", "read");
    for (const header of [
      "Bearer",
      "Bearer ",
      "Basic dXNlcjpwYXNz",
      `Bearer ${token}x`,
      `Bearer ${token} ${token}`,
      token,
    ]) {
      const answer = await ask(harness, "POST /v1/events", { authorization: header }, EVENT);
      expect(answer.status, header).toBe(401);
      expect(answer.body).not.toContain(token);
    }
    expect((await ask(harness, "GET /v1/events", { authorization: `bearer ${token}` })).status).toBe(200);
  });

  test("a 401 names the token file where there is one, and else how to get a token", async () => {
    for (const hasTokenFile of [true, false]) {
      const harness = await started({ hasTokenFile });
      const { body } = await ask(harness, "GET /v1/actions");
      expect(body.includes("in the file `token`")).toBe(hasTokenFile);
      expect(body.includes("with the server stopped and --data")).toBe(!hasTokenFile);
      const unknown = await ask(harness, "GET /v1/actions", { authorization: "Bearer evreg_other" });
      expect(unknown.body).toContain("with the server stopped and --data");
    }
  });

  test("a token in the address is ignored", async () => {
    const harness = await started({});
    const token = await harness.token("admin");
    expect((await ask(harness, `GET /v1/actions?access_token=${token}`)).status).toBe(401);
    expect(JSON.stringify(harness.log)).not.toContain(token);
  });

  test("each request of a connection has the rights of its own token, and none once that is revoked or over", async () => {
    const harness = await started({});
    const { tokens } = harness.owner;
    const { clock } = harness.local;
    const kept = await tokens.create({ name: "kept", scopes: ["read"] });
    const revoked = await tokens.create({ name: "revoked", scopes: ["read"] });
    const ending = {
      name: "ending",
      scopes: ["read"],
      expires_at: new Date(clock.now() + 60_000).toISOString(),
    };
    const over = await tokens.create(ending);
    const raw = await RawConnection.open(harness.port);
    const nameOf = async ({ data: { token } }: typeof kept): Promise<unknown> => {
      raw.send(`GET /v1/whoami HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`);
      const { status, body } = await raw.answer();
      return status === 200 ? (JSON.parse(body) as { data: { name: string } }).data.name : status;
    };
    for (const token of [kept, kept, revoked, kept, revoked]) {
      expect(await nameOf(token)).toBe(token.data.name);
    }
    await tokens.revoke(revoked.data.rowid);
    expect(await nameOf(revoked)).toBe(401);
    expect(await nameOf(kept)).toBe("kept");
    expect([await nameOf(over), await nameOf(over)]).toEqual(["ending", "ending"]);
    await clock.advance(60_000);
    expect(await nameOf(over)).toBe(401);
    expect(await nameOf(kept)).toBe("kept");
    raw.destroy();
  });
});

test("anonymous publishing opens the two publish routes and nothing else", async () => {
  const harness = await started({ auth: { anonymousPublish: true } });
  expect((await ask(harness, "POST /v1/events", {}, EVENT)).status).toBe(201);
  expect((await ask(harness, "POST /v1/events/batch", {}, BATCH)).status).toBe(201);
  expect((await ask(harness, "GET /v1/events")).status).toBe(401);
  expect((await ask(harness, "GET /v1/events/1")).status).toBe(401);
  expect((await ask(harness, "POST /v1/actions", {}, "{}")).status).toBe(401);
  const { status, body } = await ask(harness, "GET /v1/whoami");
  expect([status, JSON.parse(body)]).toMatchObject([
    200,
    { data: { name: "anonymous", scopes: ["publish"] } },
  ]);
  // Not on loopback only: the host does not matter here.
  expect((await ask(harness, "POST /v1/events", { host: "evreg.example" }, EVENT)).status).toBe(201);
});

describe.each([
  ["dev", { dev: true }],
  ["auth off", { auth: { mode: "off" } }],
] as const)("%s", (_, options) => {
  test("needs no token on loopback", async () => {
    const harness = await started(options);
    for (const host of ["localhost", "LOCALHOST:7480", "127.0.0.1", "127.8.7.6:1", "[::1]:7480", "[::1]"]) {
      expect((await ask(harness, "GET /v1/tokens", { host })).status, host).toBe(200);
    }
    expect((await ask(harness, "POST /v1/events", {}, EVENT)).status).toBe(201);
  });

  test("refuses requests for another host, on every route", async () => {
    const harness = await started(options);
    for (const host of [
      "evil.example",
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "10.0.0.1",
      "0.0.0.0",
      "128.0.0.1",
    ]) {
      expect((await ask(harness, "GET /v1/tokens", { host })).status, host).toBe(403);
      expect((await ask(harness, "GET /health", { host })).status, host).toBe(403);
    }
  });

  test("lets no web page of another origin act", async () => {
    const harness = await started(options);
    const own = `http://127.0.0.1:${harness.port}`;
    for (const origin of [
      "https://evil.example",
      "null",
      "http://127.0.0.1:1",
      "http://localhost.evil.example",
    ]) {
      expect((await ask(harness, "POST /v1/deliveries/1/retry", { origin })).status, origin).toBe(403);
    }
    expect((await ask(harness, "GET /v1/actions", { origin: own })).status).toBe(200);
    expect((await ask(harness, "POST /v1/events", { "content-type": "text/plain" }, EVENT)).status).toBe(415);
  });

  test("lets no web page of another site load anything but what is open to all", async () => {
    const harness = await started(options);
    for (const site of ["cross-site", "same-site"]) {
      const headers = { "sec-fetch-site": site, "sec-fetch-mode": "no-cors" };
      for (const path of ["/v1/backup", "/v1/events", "/metrics"]) {
        expect((await ask(harness, `GET ${path}`, headers)).status, path).toBe(403);
      }
      expect((await ask(harness, "POST /v1/events", headers, EVENT)).status).toBe(403);
      expect((await ask(harness, "GET /health", headers)).status).toBe(200);
    }
    for (const site of ["none", "same-origin"]) {
      expect((await ask(harness, "GET /v1/events", { "sec-fetch-site": site })).status, site).toBe(200);
    }
  });

  test("refuses a token of another server all the same", async () => {
    const harness = await started(options);
    const answer = await ask(harness, "GET /v1/actions", { authorization: "Bearer evreg_other" });
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body).error).toContain("leave");
    const read = `Bearer ${await harness.token("read")}`;
    expect((await ask(harness, "POST /v1/events", { authorization: read }, EVENT)).status).toBe(403);
  });
});
