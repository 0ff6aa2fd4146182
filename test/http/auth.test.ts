import { describe, expect, onTestFinished, test } from "vitest";
import { type Harness, type HarnessOptions, type Sent, startHarness } from "./harness.ts";
import { RawConnection } from "./raw-connection.ts";

async function started(options: HarnessOptions = {}): Promise<Harness> {
  const harness = await startHarness(options);
  onTestFinished(() => harness.close());
  await harness.owner.actions.create({ action: "a.b", application: "app", schemata: {} });
  return harness;
}

/** What the requests are answered with, all with the same headers. A `POST` sends an event, or a batch of one. */
async function statuses(
  harness: Harness,
  lines: readonly string[],
  headers: Record<string, string> = {},
): Promise<number[]> {
  const event = { action: "a.b", payload: {} };
  const answers = lines.map((line) => {
    const body = line.endsWith("/batch") ? { events: [event] } : event;
    return harness.ask(line, line.startsWith("POST") ? { body, headers } : { headers });
  });
  return (await Promise.all(answers)).map(({ status }) => status);
}

describe("with tokens", () => {
  test("no token is 401 with WWW-Authenticate, on every route under /v1", async () => {
    const harness = await started();
    const names = ["actions", "events", "subscriptions", "deliveries", "tokens", "whoami"];
    for (const line of [...names.map((name) => `GET /v1/${name}`), "POST /v1/events", "GET /metrics"]) {
      const { status, headers, body } = await harness.ask(line);
      expect([status, headers["www-authenticate"]], line).toEqual([401, expect.stringMatching(/^Bearer/)]);
      expect(body).toMatchObject({ code: 401 });
    }
    expect(await statuses(harness, ["GET /health", "GET /openapi.json"])).toEqual([200, 200]);
  });

  test("an invalid token is 401, also where none is needed to publish; the scheme is not case-sensitive", async () => {
    const harness = await started({ auth: { anonymousPublish: true } });
    const token = await harness.token("publish", "read");
    const twice = `Bearer ${token} ${token}`;
    for (const authorization of [
      "Bearer",
      "Bearer ",
      "Basic dXNlcjpwYXNz",
      `Bearer ${token}x`,
      twice,
      token,
    ]) {
      const { status, bytes } = await harness.ask("POST /v1/events", { headers: { authorization } });
      expect(status, authorization).toBe(401);
      expect(bytes.toString()).not.toContain(token);
    }
    expect(await statuses(harness, ["GET /v1/events"], { authorization: `bearer ${token}` })).toEqual([200]);
  });

  test("a 401 names the token file where there is one, and else how to get a token", async () => {
    for (const hasTokenFile of [true, false]) {
      const harness = await started({ hasTokenFile });
      const errorOf = async (sent: Sent): Promise<string> =>
        (await harness.ask("GET /v1/actions", sent)).body.error;
      const error = await errorOf({});
      expect(error.includes("in the file `token`")).toBe(hasTokenFile);
      expect(error.includes("with the server stopped and --data")).toBe(!hasTokenFile);
      expect(await errorOf({ token: "evreg_other" })).toContain("with the server stopped and --data");
    }
  });

  test("a token in the address is ignored", async () => {
    const harness = await started();
    const token = await harness.token("admin");
    expect(await statuses(harness, [`GET /v1/actions?access_token=${token}`])).toEqual([401]);
    expect(JSON.stringify(harness.log)).not.toContain(token);
  });

  test("each request of a connection has the rights of its own token, and none once that is revoked or over", async () => {
    const harness = await started();
    const { tokens } = harness.owner;
    const { clock } = harness.local;
    const create = async (name: string, more = {}) =>
      (await tokens.create({ name, scopes: ["read"], ...more })).data;
    const kept = await create("kept");
    const revoked = await create("revoked");
    const over = await create("ending", { expires_at: new Date(clock.now() + 60_000).toISOString() });
    const raw = await RawConnection.open(harness.port);
    const nameOf = async ({ token }: typeof kept): Promise<unknown> => {
      raw.send(`GET /v1/whoami HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${token}\r\n\r\n`);
      const { status, body } = await raw.answer();
      return status === 200 ? (JSON.parse(body) as { data: { name: string } }).data.name : status;
    };
    for (const token of [kept, kept, revoked, kept, revoked]) expect(await nameOf(token)).toBe(token.name);
    await tokens.revoke(revoked.rowid);
    expect(await nameOf(revoked)).toBe(401);
    expect(await nameOf(kept)).toBe("kept");
    expect([await nameOf(over), await nameOf(over)]).toEqual(["ending", "ending"]);
    await clock.advance(60_000);
    expect(await nameOf(over)).toBe(401);
    expect(await nameOf(kept)).toBe("kept");
    raw.destroy();
  });
});

test("a token may revoke itself, and no other without the scope for it", async () => {
  const harness = await started();
  await harness.token("read");
  const scopes = ["publish:shop"];
  const { rowid, token } = (await harness.owner.tokens.create({ name: "own", scopes })).data;
  const revoke = async (id: number) => (await harness.ask(`DELETE /v1/tokens/${id}`, { token })).status;
  expect([await revoke(rowid - 1), await revoke(rowid), await revoke(rowid)]).toEqual([403, 200, 401]);
});

test("anonymous publishing opens the two publish routes and nothing else", async () => {
  const harness = await started({ auth: { anonymousPublish: true } });
  expect(await statuses(harness, ["POST /v1/events", "POST /v1/events/batch"])).toEqual([201, 201]);
  const others = ["GET /v1/events", "GET /v1/events/1", "POST /v1/actions", "POST /v1/tokens"];
  expect(await statuses(harness, others)).toEqual([401, 401, 401, 401]);
  const { status, body } = await harness.ask("GET /v1/whoami");
  expect([status, body.data]).toMatchObject([200, { name: "anonymous", scopes: ["publish"] }]);
  // Not on loopback only: the host does not matter here.
  expect(await statuses(harness, ["POST /v1/events"], { host: "evreg.example" })).toEqual([201]);
});

describe("without tokens", () => {
  const options = { auth: { mode: "off" } } as const;

  test("needs no token on loopback", async () => {
    const harness = await started(options);
    for (const host of ["localhost", "LOCALHOST:7480", "127.0.0.1", "127.8.7.6:1", "[::1]:7480", "[::1]"]) {
      expect(await statuses(harness, ["GET /v1/tokens"], { host }), host).toEqual([200]);
    }
    expect(await statuses(harness, ["POST /v1/events"])).toEqual([201]);
  });

  test("refuses requests for another host, on every route", async () => {
    const harness = await started(options);
    const hosts = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "0.0.0.0"];
    for (const host of [...hosts, "128.0.0.1"]) {
      expect(await statuses(harness, ["GET /v1/tokens", "GET /health"], { host }), host).toEqual([403, 403]);
    }
  });

  test("lets no web page of another origin act", async () => {
    const harness = await started(options);
    const own = `http://127.0.0.1:${harness.port}`;
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1", `${own}.evil.example`]) {
      expect(await statuses(harness, ["POST /v1/deliveries/1/retry"], { origin }), origin).toEqual([403]);
    }
    expect(await statuses(harness, ["GET /v1/actions"], { origin: own })).toEqual([200]);
    expect(await statuses(harness, ["POST /v1/events"], { "content-type": "text/plain" })).toEqual([415]);
  });

  test("lets no web page of another site load anything but what is open to all", async () => {
    const harness = await started(options);
    const lines = ["/v1/backup", "/v1/events", "/metrics", "/health"].map((path) => `GET ${path}`);
    for (const site of ["cross-site", "same-site"]) {
      const headers = { "sec-fetch-site": site, "sec-fetch-mode": "no-cors" };
      expect(await statuses(harness, [...lines, "POST /v1/events"], headers)).toEqual([
        403, 403, 403, 200, 403,
      ]);
    }
    for (const site of ["none", "same-origin"]) {
      expect(await statuses(harness, ["GET /v1/events"], { "sec-fetch-site": site }), site).toEqual([200]);
    }
  });

  test("refuses a token of another server all the same", async () => {
    const harness = await started(options);
    const { status, body } = await harness.ask("GET /v1/actions", { token: "evreg_other" });
    expect([status, body.error]).toEqual([401, expect.stringContaining("leave")]);
    const authorization = `Bearer ${await harness.token("read")}`;
    expect(await statuses(harness, ["POST /v1/events"], { authorization })).toEqual([403]);
  });
});
