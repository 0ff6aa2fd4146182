import { Webhook } from "standardwebhooks";
import { afterAll, expect, test } from "vitest";
import type { HandlerTest } from "../../src/domain/webhook.ts";
import { otherServer } from "../support/other-server.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { register, subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const SCHEMA = { type: "object", properties: { id: { type: "integer", minimum: 1 } }, required: ["id"] };
const TEST = "subscriptions test billing";
let receiver: Receiver;
let secret: string;

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  await register(evreg, "order.created", SCHEMA);
  const given = { handler: receiver.url, headers: { "X-Team": "billing-team" }, active: false };
  ({ secret } = await subscribe(evreg, "invoices", given));
  await subscribe(evreg, "pulled", { mode: "pull" });
  await subscribe(evreg, "down");
});
const { run, json, expectEach, write } = served;
afterAll(() => receiver.close());

test("a test is one signed request with the subscription's headers, also while it is paused", async () => {
  receiver.script({ status: 202, headers: { "X-Seen": "yes", "Set-Cookie": "a=b" }, body: "thanks" });
  const { data } = await json<HandlerTest>(`${TEST}/invoices`);
  const [sent] = await receiver.received(1);
  const { headers, body } = sent!;
  expect(headers).toMatchObject({ "x-evreg-test": "true", "x-team": "billing-team" });
  expect(headers["x-evreg-delivery"]).toBe("0_1");
  expect(headers["webhook-id"]).toMatch(/^evt_test_[0-9a-f]{16}$/);
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ event_id: "0", delivery_attempt: 1 });
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
  const { stdout, code } = await run(`${TEST}/invoices --json`);
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
  const failed = [
    String.raw`^Outcome +failed\n(?:.*\n)*Answer +503\n(?:.*\n)*`,
    String.raw`Time +\d+ ms \(connection \d+ ms, first byte \d+ ms\)\n(?:.*\n)*`,
    String.raw`Request +POST http[^]*retry-after: 9`,
  ];
  const why = "A handler must answer 200 to 299. See in its own log why it answered 503.\n";
  await expectEach([[`${TEST}/invoices`, 1, new RegExp(failed.join(""), "m"), why]]);
  // A handler that asks for a pause slows no delivery down.
  const unchanged = { failing_since: null, slowed_until: null };
  expect((await served.evreg.subscriptions.get(1)).data).toMatchObject(unchanged);
  receiver.answer = () => "reset";
  const reset = /^Answer +connection_reset: connection cut\n(?:.*\n)*Request +POST http/m;
  await expectEach([
    [`${TEST}/invoices`, 1, reset],
    [`${TEST}/down`, 1, /^Request +POST http.*^Its body$/ms, "connection_refused: Nothing listens there.\n"],
  ]);
  receiver.answer = () => ({});
  await expectEach([[`${TEST}/invoices`, 0, /^Outcome +accepted$/m]]);
});

test("of an error that only a newer server knows, the code is shown", async () => {
  const { data } = JSON.parse((await run(`${TEST}/down --json`)).stdout) as { data: HandlerTest };
  const failure = { error_code: "pigeon_lost", tls_reason: "unseen", refusal: null };
  const attempts = [
    { ...failure, attempt: 1, started_at: "2026-01-01T00:00:00.000Z", duration_ms: 1, outcome: "failed" },
  ];
  const { url, close } = await otherServer((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ data: { ...data, ...failure, rowid: 1, status: "failed", attempts } }));
  });
  await expectEach([
    [`subscriptions test 1 --action a --payload {} --url ${url}`, 1, /^Answer +pigeon_lost$/m, ""],
    [`deliveries get 1 --url ${url}`, 0, /pigeon_lost/, ""],
  ]);
  await close();
});

async function bodyOf(words: string, input = ""): Promise<string> {
  return (await json<HandlerTest>(`${TEST}/invoices ${words}`, { input })).data.request.body;
}

test("the payload is given as JSON, in a file or on stdin, or made up", async () => {
  receiver.answer = () => ({});
  write("payload.json", '{"id": 12345678901234567890}');
  expect(await bodyOf('--payload {"id":3}')).toContain('"payload":{"id":3}');
  expect(await bodyOf("--payload payload.json")).toContain('"payload":{"id": 12345678901234567890}');
  expect(await bodyOf("--payload -", '{"id": 4}')).toContain('"payload":{"id": 4}');
  expect((await json<HandlerTest>(`${TEST}/invoices`)).data.request.body).toContain('"payload":{"id":1}');
});

test("what breaks the schema is not sent, and a subscription that consumers claim from has no handler", async () => {
  const before = receiver.requests.length;
  const pull = /^Error: Subscription \d+ is of mode pull: the subscription has no handler to test, /;
  await expectEach([
    [`${TEST}/invoices --payload {"id":"x"}`, 1, "", /does not conform to the schema of order\.created: id /],
    [`${TEST}/pulled`, 1, "", pull],
  ]);
  expect(receiver.requests).toHaveLength(before);
});

test("of a pattern the first action that it hears is taken, or the one that is named", async () => {
  receiver.answer = () => ({});
  for (const action of ["order.aborted", "user.created"]) await register(served.evreg, action);
  await subscribe(served.evreg, "all", { action: "order.*", handler: receiver.url });
  const told = /--action: must be order\.\*, as the subscription hears no other/;
  await expectEach([
    [`${TEST}/all --json`, 0, /"action":"order\.aborted"/],
    [`${TEST}/all --action order.created --json`, 0, /"action":"order\.created"/],
    [`${TEST}/all --action user.created`, 2, "", told],
  ]);
});
