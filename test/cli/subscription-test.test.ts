import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { HandlerTest } from "../../src/domain/webhook.ts";
import { verify } from "../../src/sdk/webhook.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { useServed } from "../support/served.ts";

const SCHEMA = {
  type: "object",
  properties: { id: { type: "integer", minimum: 1 } },
  required: ["id"],
};
const NAME = "billing/invoices";
let receiver: Receiver;
let secret: string;

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: SCHEMA });
  const names = { application: "billing", subscription: "invoices", action: "order.created" };
  const headers = { "X-Team": "billing-team" };
  const made = await evreg.subscriptions.create({ ...names, handler: receiver.url, headers, active: false });
  ({ secret } = made.data);
  const names2 = { ...names, subscription: "pulled", mode: "pull" as const };
  await evreg.subscriptions.create(names2);
});
const { run, json } = served;
afterAll(() => receiver.close());

test("a test is one signed request with the subscription's headers, also while it is paused", async () => {
  receiver.script({ status: 202, headers: { "X-Seen": "yes", "Set-Cookie": "a=b" }, body: "thanks" });
  const { data } = await json<HandlerTest>(["subscriptions", "test", NAME, "--seed", "7"]);
  const [sent] = await receiver.received(1);
  const { headers, body } = sent!;
  expect(headers).toMatchObject({ "x-evreg-test": "true", "x-team": "billing-team" });
  expect(headers["x-evreg-delivery"]).toBe("0_1");
  expect(headers["webhook-id"]).toMatch(/^evt_test_[0-9a-f]{16}$/);
  expect(verify(headers, body, secret)).toMatchObject({ event_id: "0", delivery_attempt: 1 });
  expect(data).toMatchObject({
    application: "billing",
    subscription: "invoices",
    action: "order.created",
    outcome: "delivered",
    error_code: null,
    request: { method: "POST", url: receiver.url, body: body.toString("utf8") },
    response: { status_code: 202, body: "thanks" },
  });
  expect(data.response!.headers).toMatchObject({ "x-seen": "yes", "set-cookie": "[redacted]" });
  for (const ms of [data.duration_ms, data.connect_ms, data.first_byte_ms])
    expect(ms).toBeGreaterThanOrEqual(0);
  expect(await served.evreg.deliveries.list()).toEqual({ data: [] });
  expect((await served.evreg.events.list({ action: "order.created" })).data).toEqual([]);
});

test("it shows no secret, no bearer and no whole signature, whatever the handler sends back", async () => {
  receiver.answer = (request) => ({ status: 500, body: JSON.stringify(request.headers) });
  const { stdout, code } = await run(["subscriptions", "test", NAME, "--json"]);
  expect(code).toBe(1);
  const { data } = JSON.parse(stdout) as { data: HandlerTest };
  const { headers } = receiver.requests.at(-1)!;
  expect(data.request.headers["Authorization"]).toBe("Bearer [redacted]");
  const shown = data.request.headers["X-Evreg-Signature"]!;
  expect(shown).toMatch(/^sha256=[0-9a-f]{8}…$/);
  expect(headers["x-evreg-signature"]).toContain(shown.slice(0, -1));
  expect(stdout).not.toContain(secret);
  expect(JSON.stringify(data.request)).not.toContain(headers["webhook-signature"]);
});

test("for a person the request, the answer and the times are shown, and why there was none", async () => {
  receiver.answer = () => ({ status: 503, headers: { "Retry-After": "9" }, body: "later" });
  const failed = await run("subscriptions test 1");
  expect(failed.code).toBe(1);
  expect(failed.stdout).toMatch(/^Outcome +failed$/m);
  expect(failed.stdout).toMatch(/^Answer +503$/m);
  expect(failed.stdout).toMatch(/^Time +\d+ ms \(connection \d+ ms, first byte \d+ ms\)$/m);
  expect(failed.stdout).toMatch(/^Sent +POST http/m);
  expect(failed.stdout).toContain("retry-after: 9");
  // A handler that asks for a pause slows no delivery down.
  expect((await served.evreg.subscriptions.get(1)).data).toMatchObject({
    failing_since: null,
    slowed_until: null,
  });
  receiver.answer = () => "reset";
  const reset = await run("subscriptions test 1");
  expect(reset.stdout).toMatch(/^Answer +connection_reset: connection cut$/m);
  expect(reset.stdout).toMatch(/^Sent +POST http/m);
  expect(failed.stderr).toBe("A handler must answer 200 to 299. See in its own log why it answered 503.\n");
  receiver.answer = () => ({});
  expect((await run("subscriptions test 1")).stdout).toMatch(/^Outcome +accepted$/m);
});

test("of a handler that is down it says that nothing was sent, and what to do", async () => {
  const names = { application: "billing", subscription: "down", action: "order.created" };
  await served.evreg.subscriptions.create({ ...names, handler: "http://127.0.0.1:9/hook" });
  const { code, stdout, stderr } = await run("subscriptions test billing/down");
  expect(code).toBe(1);
  expect(stdout).toMatch(/^Not sent +POST http/m);
  expect(stdout).toMatch(/^Body not sent$/m);
  expect(stdout).not.toMatch(/^(?:Sent|Body sent)/m);
  expect(stderr).toBe("connection_refused: Nothing listens there.\n");
});

async function bodyOf(words: readonly string[], input?: string): Promise<string> {
  const options = input === undefined ? {} : { input };
  return (await json<HandlerTest>(["subscriptions", "test", NAME, ...words], options)).data.request.body;
}

test("the payload is given as JSON, in a file or on stdin, or made up by a seed", async () => {
  receiver.answer = () => ({});
  writeFileSync(join(served.folder, "payload.json"), '{"id": 12345678901234567890}');
  expect(await bodyOf(["--payload", '{"id": 3}'])).toContain('"payload":{"id": 3}');
  expect(await bodyOf(["--payload", "payload.json"])).toContain('"payload":{"id": 12345678901234567890}');
  expect(await bodyOf(["--payload", "-"], '{"id": 4}')).toContain('"payload":{"id": 4}');
  const seeded = async () => JSON.parse(await bodyOf(["--seed", "5"])) as { payload: object };
  expect((await seeded()).payload).toEqual((await seeded()).payload);
});

test("what breaks the schema is not sent, and a subscription that consumers claim from has no handler", async () => {
  const before = receiver.requests.length;
  const broken = await run(["subscriptions", "test", NAME, "--payload", '{"id": "x"}']);
  expect(broken).toMatchObject({ code: 1, stdout: "" });
  expect(broken.stderr).toContain("does not conform to the schema of order.created: id ");
  const pulled = await run("subscriptions test billing/pulled");
  expect(pulled).toMatchObject({ code: 1, stdout: "" });
  expect(pulled.stderr).toMatch(
    /^Error: Subscription \d+ is of mode pull: the subscription has no handler to test, /,
  );
  expect(receiver.requests).toHaveLength(before);
});

async function actionOf(...words: string[]): Promise<string> {
  return (await json<HandlerTest>(["subscriptions", "test", "billing/all", ...words])).data.action;
}

test("of a pattern the first action that it hears is taken, or the one that is named", async () => {
  receiver.answer = () => ({});
  for (const action of ["order.aborted", "user.created"]) {
    await served.evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
  }
  const names = { application: "billing", subscription: "all", action: "order.*" };
  await served.evreg.subscriptions.create({ ...names, handler: receiver.url });
  expect(await actionOf()).toBe("order.aborted");
  expect(await actionOf("--action", "order.created")).toBe("order.created");
  const other = await run("subscriptions test billing/all --action user.created");
  expect(other).toMatchObject({ code: 2, stdout: "" });
  expect(other.stderr).toContain("--action: must be order.*, as the subscription hears no other");
});
