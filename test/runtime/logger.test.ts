import { spawn } from "node:child_process";
import { describe, expect, test } from "vitest";
import { createLogger } from "../../src/runtime/logger.ts";
import type { LogOptions } from "../../src/runtime/logger.ts";

function target(isTTY: boolean, colors = false) {
  const lines: string[] = [];
  return { lines, isTTY, hasColors: () => colors, write: (text: string) => void lines.push(text) };
}

const JSON_LINES: LogOptions = { level: "info", format: "auto" };
const TOKEN = `evreg_${"a1B2c3".repeat(6)}`;
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

describe("lines for a machine", () => {
  test("are one JSON object each, with time, level, message and fields", async () => {
    const out = target(false);
    const logger = await createLogger(JSON_LINES, out);
    logger.info({ eventId: 5, durationMs: 1.5 }, "published");
    expect(out.lines).toHaveLength(1);
    const line = JSON.parse(out.lines[0] ?? "") as Record<string, unknown>;
    expect(line).toEqual({
      level: "info",
      time: expect.any(String),
      eventId: 5,
      durationMs: 1.5,
      msg: "published",
    });
    expect(new Date(String(line["time"])).toISOString()).toBe(line["time"]);
  });

  test("name the process where several write to one log", async () => {
    const [out, terminal] = [target(false), target(true)];
    for (const one of [out, terminal])
      (await createLogger({ ...JSON_LINES, pid: 17 }, one)).info({}, "published");
    expect(JSON.parse(out.lines[0]!)).toMatchObject({ pid: 17, msg: "published" });
    expect(terminal.lines[0]).toMatch(/^\d\d:\d\d:\d\d 17  published\n$/);
  });

  test("below the level are left out", async () => {
    const out = target(false);
    for (const level of ["warn", "silent"] as const) {
      const logger = await createLogger({ level, format: "json" }, out);
      for (const name of ["debug", "info", "warn", "error"] as const) logger[name]({}, name);
    }
    expect(out.lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(["warn", "error"]);
  });

  test("contain an error's message and stack", async () => {
    const out = target(false);
    const logger = await createLogger(JSON_LINES, out);
    const failure = new Error("it broke", { cause: new Error("because") });
    logger.error({ err: failure }, "no luck");
    logger.error({ error: failure }, "no luck");
    for (const line of out.lines) {
      expect(line).toContain("it broke");
      expect(line).toContain("because");
      expect(line).toContain("logger.test.ts");
    }
  });
});

describe("secrets", () => {
  test.each(["json", "pretty"] as const)("do not appear in %s lines, by name or by form", async (format) => {
    const out = target(false);
    const logger = await createLogger({ level: "info", format }, out);
    logger.info({ token: "one-secret", headers: { authorization: "Bearer two-secret" } }, "fields");
    logger.info({ subscription: { secret: "three-secret", rowid: 1 }, password: "four-secret" }, "fields");
    logger.info({ body: { bearer_token: "six-secret" } }, "fields");
    logger.info({ deep: { er: { url: `https://x/?t=${TOKEN}` } } }, `minted ${TOKEN} and ${SECRET}`);
    logger.error({ err: new Error(`refused: Authorization: Bearer five-secret, ${TOKEN}`) }, "failed");
    const all = out.lines.join("");
    expect(all).not.toMatch(/-secret|a1B2c3|BwcHBw/);
    expect(all.match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(8);
    expect(all).toContain("minted [redacted] and [redacted]");
  });
});

async function lineOf(fields: object, message: string, level: "debug" | "warn" = "debug"): Promise<string> {
  const out = target(true);
  (await createLogger({ level: "debug", format: "auto" }, out))[level](fields, message);
  return out.lines.join("");
}

const AT = String.raw`^\d\d:\d\d:\d\d  `;
const ATTEMPT = {
  delivery: 9,
  event: 72,
  subscription: 3,
  action: "order.created",
  to: "billing/invoices",
  attempt: 1,
  durationMs: 12,
  handler: "https://hooks.example.com",
};

describe("lines for people", () => {
  test.each<[object, string]>([
    [{ outcome: "delivered", status: 204 }, "204  12 ms"],
    [{ outcome: "delivered", consumer: true }, "delivered  12 ms"],
    [
      { outcome: "retried", status: 500, attempt: 2, retryInMs: 2_000 },
      "500  12 ms  attempt 2, again in 2 s",
    ],
    [
      { outcome: "retried", error: "timeout", durationMs: 10_004, retryInMs: 0 },
      "timed out  10 s 4 ms  again now",
    ],
    [
      { outcome: "failed", error: "connection_refused", attempt: 6 },
      "nobody listens  attempt 6, failed for good",
    ],
    [{ outcome: "gone", status: 410 }, "410  12 ms  failed for good, subscription deactivated"],
  ])("tell of an attempt what went where, how it ended and what comes next: %j", async (fields, end) => {
    const line = await lineOf({ ...ATTEMPT, ...fields }, "attempt");
    expect(line.replace(new RegExp(AT), "")).toBe(`order.created  #72  → billing/invoices  ${end}\n`);
  });

  test("leave out a claim whose caller left", async () => {
    const request = { method: "POST", path: "/v1/subscriptions/7/claims", status: 499, durationMs: 9 };
    expect(await lineOf(request, "request")).toBe("");
    expect(await lineOf({ ...request, path: "/v1/subscriptions" }, "request")).toContain("499");
  });

  test("tell of a request what it was and, of a refused one, why", async () => {
    const request = { requestId: "r", method: "POST", path: "/v1/events", bytes: 2, durationMs: 3 };
    expect(await lineOf({ ...request, status: 201, by: "local", address: "127.0.0.1" }, "request")).toMatch(
      new RegExp(`${AT}POST /v1/events  201  3 ms\n$`),
    );
    const refused = {
      ...request,
      status: 422,
      reason: "total must be number",
      by: "shop",
      address: "10.0.0.7",
    };
    expect(await lineOf(refused, "request")).toMatch(
      new RegExp(`${AT}POST /v1/events  422  3 ms  total must be number  shop 10\\.0\\.0\\.7\n$`),
    );
  });

  test("leave out checks of the health, and a read that is only repeated", async () => {
    const out = target(true);
    const logger = await createLogger({ level: "debug", format: "pretty" }, out);
    const read = (path: string, status = 200) =>
      logger.debug({ method: "GET", path, status, durationMs: 1 }, "request");
    for (const path of ["/health", "/v1/events/7", "/v1/events/7", "/v1/actions", "/v1/events/7"]) read(path);
    const claim = { method: "POST", path: "/v1/subscriptions/7/claims", durationMs: 1 };
    logger.debug({ ...claim, status: 200 }, "request");
    read("/health", 503);
    expect(out.lines.map((line) => line.split("  ")[1])).toEqual([
      "GET /v1/events/7",
      "GET /v1/actions",
      "GET /v1/events/7",
      "GET /health",
    ]);
  });

  test("have of anything else the message, its members, and a fault's stack below", async () => {
    expect(await lineOf({ status: 503, path: "/a b", n: null }, "refused", "warn")).toMatch(
      new RegExp(`${AT}warning: refused  status=503 path="/a b" n=null\n$`),
    );
    const text = await lineOf({ err: new Error("it broke") }, "no luck");
    expect(text).toMatch(new RegExp(`${AT}no luck\n    Error: it broke\n        at `));
  });

  test("are coloured only where the terminal supports it", async () => {
    for (const colors of [false, true]) {
      const out = target(true, colors);
      (await createLogger(JSON_LINES, out)).info({}, "x");
      expect(out.lines.join("").includes("\u001b[")).toBe(colors);
    }
  });

  test("never pass control characters to the terminal", async () => {
    const out = target(true);
    const logger = await createLogger(JSON_LINES, out);
    logger.info({ text: "a\u001b]0;owned\u0007b\u009b2J", back: "\\u001b" }, "clear\u001b[2J\rover \\u0007");
    const text = out.lines.join("");
    // eslint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    expect(text).toContain("clear\\u001b[2J\\rover \\u0007");
    expect(text).toContain("owned");
  });
});

/** How the program ends in a process of its own once a byte has come, and what it wrote. */
async function runLogger(format: string, body: string, stderr: "late" | "closed" | "unread") {
  const source = new URL("../../src/runtime/logger.ts", import.meta.url).href;
  const program = `
    const { createLogger } = await import(${JSON.stringify(source)});
    const logger = await createLogger({ level: "info", format: ${JSON.stringify(format)} });
    process.stdin.once("data", () => { ${body} });
    process.stdout.write("ready");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "pipe" });
  const [out, log]: [string[], string[]] = [[], []];
  const nextOutput = () => new Promise((resolve) => child.stdout.once("data", resolve));
  await nextOutput();
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk.toString()));
  if (stderr === "closed") child.stderr.destroy();
  child.stdin.write("go");
  if (stderr === "late") {
    await nextOutput();
    child.stderr.on("data", (chunk: Buffer) => log.push(chunk.toString()));
  }
  const code = await new Promise((resolve) => child.on(stderr === "unread" ? "exit" : "close", resolve));
  return { code, out: out.join(""), log: log.join("") };
}

test("what a reader takes late is written all the same", async () => {
  const { code, log } = await runLogger(
    "json",
    `for (let line = 0; line < 5000; line += 1) logger.info({ line }, "x".repeat(200));
     process.stdin.destroy(); process.stdout.write("logged");`,
    "late",
  );
  expect(code).toBe(0);
  const lines = log.trimEnd().split("\n");
  expect(lines).toHaveLength(5000);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ line: 4999 });
});

describe.each(["json", "pretty"])("a reader of the log (%s)", (format) => {
  test("that has closed does not end the process", async () => {
    const body = `for (let line = 0; line < 100; line += 1) logger.info({ line }, "x");
       setImmediate(() => setImmediate(() => { logger.info({}, "y"); process.stdout.write("alive"); process.exit(0); }));`;
    expect(await runLogger(format, body, "closed")).toMatchObject({ code: 0, out: "alive" });
  });

  test("that has closed, or reads nothing, does not hold the process when it ends", async () => {
    const body = `for (let line = 0; line < 20000; line += 1) logger.info({ line }, "x".repeat(200)); process.exit(0);`;
    expect(await runLogger(format, body, "closed")).toMatchObject({ code: 0 });
    expect(await runLogger(format, body, "unread")).toMatchObject({ code: 0 });
  });
});
