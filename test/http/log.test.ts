import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, type Sent, startHarness } from "./harness.ts";

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness({
    around: ({ parts }) => ({
      parts: {
        ...parts,
        actions: () => {
          throw new TypeError("a slip that quotes hunter2");
        },
      },
    }),
  });
});
afterAll(() => harness.close());

test("a crash in a route is 500, scrubbed, and logged once with its cause", async () => {
  const token = await harness.token("read");
  const before = harness.log.length;
  const headers = { "x-request-id": "crash-1" };
  const { status, body, bytes } = await harness.ask("GET /v1/actions", { token, headers });
  expect([status, body]).toEqual([500, { error: expect.any(String), details: {}, code: 500 }]);
  expect(String(bytes)).not.toContain("hunter2");
  const lines = harness.log.slice(before);
  const errors = lines.filter(({ level }) => level === "error");
  expect(errors).toHaveLength(1);
  expect(errors[0]?.fields).toMatchObject({ requestId: "crash-1", err: expect.any(TypeError) });
  expect(lines.filter(({ message }) => message === "request")).toHaveLength(1);
});

test("each request is one line: method, path, status, time and size, without query or token", async () => {
  const token = await harness.token("read");
  const before = harness.log.length;
  const sent = { token, headers: { "x-request-id": "trace/7:a+b=" } };
  const { headers, bytes } = await harness.ask("GET /v1/events?limit=1", sent);
  expect(headers["x-request-id"]).toBe("trace/7:a+b=");
  const lines = harness.log.slice(before);
  expect(lines).toEqual([
    {
      level: "debug",
      message: "request",
      fields: {
        requestId: "trace/7:a+b=",
        method: "GET",
        path: "/v1/events",
        status: 200,
        durationMs: expect.any(Number),
        bytes: bytes.length,
        by: "read",
        address: "127.0.0.1",
      },
    },
  ]);
  expect(JSON.stringify(lines)).not.toContain(token);
});

test("a refusal says why and to whom, and of nobody it tells no name", async () => {
  const token = await harness.token("read");
  const send = async (sent: Sent) => {
    const before = harness.log.length;
    await harness.ask("GET /v1/events/999999", sent);
    return harness.log[before]!.fields;
  };
  expect(await send({ token })).toMatchObject({
    status: 404,
    reason: "There is no event 999999.",
    by: "read",
    address: "127.0.0.1",
  });
  const nobody = await send({});
  expect(nobody).toMatchObject({ status: 401, reason: expect.stringContaining("needs a token") as string });
  expect(nobody).not.toHaveProperty("by");
});

test("reads and publishes that succeed are logged at debug; refusals and changes at info", async () => {
  const token = await harness.token("admin");
  const action = { action: "log.tested", application: "x", schemata: { type: "object" } };
  const PULLED = { application: "x", subscription: "p", action: "log.tested", mode: "pull" };
  const steps = [
    ["GET /v1/events", undefined, "debug"],
    ["POST /v1/actions", action, "info"],
    ["POST /v1/events", { action: "log.tested", payload: {} }, "debug"],
    ["POST /v1/events", { action: "log.tested", payload: 1 }, "info"],
    ["GET /v1/events/999999", undefined, "info"],
    ["GET /health", undefined, "debug"],
    ["POST /v1/subscriptions", PULLED, "info"],
    ["POST /v1/subscriptions/1/claims", {}, "debug"],
  ] as const;
  for (const [request, body, level] of steps) {
    const before = harness.log.length;
    await harness.ask(request, { token, body });
    const levels = harness.log.slice(before).map((line) => line.level);
    expect(levels, request).toEqual([level]);
  }
});

test.each(["", "a b", "a\tb", "x".repeat(129), 'a"b', "ü"])(
  "a request id of %j is replaced",
  async (given) => {
    const { headers } = await harness.ask("GET /health", { headers: { "x-request-id": given } });
    expect(headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  },
);
