import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Got, type Harness, startHarness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await startHarness()));
afterAll(() => harness.close());

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

function ask(
  path: string,
  headers: Record<string, string> = {},
  { method = "GET", from = harness }: { method?: string; from?: Harness } = {},
): Promise<Got> {
  return from.ask(`${method} ${path}`, { headers });
}

/** The addresses that the page itself names. */
async function partsOf(): Promise<readonly string[]> {
  const { bytes } = await ask("/ui/");
  return [...String(bytes).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = ""]) => path);
}

describe("the page", () => {
  test("is served under the strict policy, without a token", async () => {
    const { status, headers, bytes } = await ask("/ui/");
    expect(status).toBe(200);
    expect(String(bytes)).toMatch(/^<!doctype html>/);
    expect(headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": POLICY,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-embedder-policy": "require-corp",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-cache",
    });
    expect(headers).not.toHaveProperty("set-cookie");
    expect(headers).not.toHaveProperty("access-control-allow-origin");
  });

  test("is at most 120 KB gzipped, with all its parts", async () => {
    const gzipped = { "accept-encoding": "gzip" };
    const answers = await Promise.all(["", ...(await partsOf())].map((part) => ask(`/ui/${part}`, gzipped)));
    expect(answers.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThanOrEqual(120_000);
  });

  test("names its parts by relative addresses, and all of them are there", async () => {
    const parts = await partsOf();
    expect(parts.length).toBeGreaterThan(2);
    for (const part of parts) {
      expect(part).toMatch(/^[\w.-]+$/);
      const { status, headers } = await ask(`/ui/${part}`);
      expect({ part, status }).toEqual({ part, status: 200 });
      const hashed = /-[A-Z0-9]{8}\./.test(part);
      expect(headers["cache-control"]).toBe(hashed ? "public, max-age=31536000, immutable" : "no-cache");
      expect(headers["content-security-policy"]).toBe(POLICY);
    }
  });

  test("comes packed to whoever takes that", async () => {
    const script = `/ui/${(await partsOf()).find((part) => part.endsWith(".js"))}`;
    const plain = await ask(script);
    expect(plain.headers).not.toHaveProperty("content-encoding");
    expect(plain.headers).toMatchObject({
      vary: "accept-encoding",
      "content-type": "text/javascript; charset=utf-8",
    });
    for (const accepted of ["gzip, deflate, br", "GZIP;q=0.5"]) {
      const packed = await ask(script, { "accept-encoding": accepted });
      expect(packed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
      expect(packed.headers["content-length"]).toBe(String(packed.bytes.length));
      expect(gunzipSync(packed.bytes).equals(plain.bytes)).toBe(true);
      expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 2);
    }
    for (const accepted of ["", "br"]) {
      const got = await ask(script, { "accept-encoding": accepted });
      expect(got.headers).not.toHaveProperty("content-encoding");
    }
  });

  test("answers HEAD, and refuses what is no reading", async () => {
    const whole = await ask("/ui/");
    const head = await ask("/ui/", {}, { method: "HEAD" });
    expect([head.status, String(head.bytes)]).toEqual([200, ""]);
    expect(head.headers["content-length"]).toBe(String(whole.bytes.length));
    const { status, headers } = await ask("/ui/", {}, { method: "POST" });
    expect([status, headers.allow]).toEqual([405, "GET, HEAD"]);
  });

  test.each(["/ui/none.js", "/ui/..%2fprogram%2fmain.js", "/ui/__proto__", "/ui/icon.svg/", "/ui//", "//"])(
    "has nothing else: %s",
    async (path) => {
      const { status, headers, body } = await ask(path);
      expect([status, body.code]).toEqual([404, 404]);
      expect(headers["content-security-policy"]).toBe(path.startsWith("/ui/") ? POLICY : undefined);
    },
  );

  test("is where its address leads without the last slash, under any prefix of a proxy", async () => {
    const { status, headers } = await ask("/ui");
    expect({ status, location: headers["location"] }).toEqual({ status: 303, location: "ui/" });
    expect(headers["content-security-policy"]).toBe(POLICY);
  });
});

describe("the address alone", () => {
  test.each([BROWSER, "text/html", "application/json;q=0.8, text/html;q=0.9"])(
    "leads a browser to the page: %s",
    async (accept) => {
      const { status, headers, bytes } = await ask("/", { accept });
      expect([status, headers.location, String(bytes)]).toEqual([303, "ui/", ""]);
      expect((await ask("/", { accept }, { method: "HEAD" })).status).toBe(303);
    },
  );

  test.each(["*/*", "application/json", ""])("answers a program as before: %s", async (accept) => {
    const { status, headers, body } = await ask("/", { accept });
    expect([status, headers["content-type"]]).toEqual([404, "application/json"]);
    expect(body.error).toMatch(/^There is nothing at \/;/);
  });
});

test("without the page everything is as if there were none", async () => {
  const without = await startHarness({ ui: { enabled: false } });
  for (const path of ["/", "/ui", "/ui/", "/ui/icon.svg"]) {
    for (const method of ["GET", "HEAD", "POST"]) {
      const { status } = await ask(path, { accept: BROWSER }, { method, from: without });
      expect({ path, method, status }).toEqual({ path, method, status: 404 });
    }
  }
  await without.close();
});

test("a name of somebody else's that leads here gets no page where no token is needed", async () => {
  const open = await startHarness({ auth: { mode: "off" } });
  for (const path of ["/", "/ui", "/ui/", "/ui/icon.svg"]) {
    const { status } = await ask(path, { accept: BROWSER, host: "evil.example" }, { from: open });
    expect({ path, status }).toEqual({ path, status: 403 });
    const own = await ask(path, { accept: BROWSER, host: `localhost:${open.port}` }, { from: open });
    expect(own.status).toBeLessThan(400);
  }
  await open.close();
});
