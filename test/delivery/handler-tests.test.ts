import { expect, onTestFinished, test } from "vitest";
import { HandlerTests } from "../../src/delivery/handler-tests.ts";
import { type Sender, trusting } from "../../src/delivery/sender.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { systemClock, systemRandom } from "../../src/runtime/clock.ts";
import type { ClaimedSubscription } from "../../src/store/queue.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { TEST_CERTIFICATE } from "../support/tls-fixture.ts";
import { names, newSender } from "./sender-setup.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const PREVIOUS = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;

function senderWith(allowNetworks: readonly string[] = ["127.0.0.0/8"]): Sender {
  const sender = newSender({
    allowNetworks,
    resolve: names({ "handler.test": ["127.0.0.1"] }),
    secureContext: trusting(TEST_CERTIFICATE),
  });
  onTestFinished(() => sender.close());
  return sender;
}

function testsWith(sender = senderWith()): HandlerTests {
  return new HandlerTests({ clock: systemClock, random: systemRandom, version: "test", sender });
}

function requestTo(handler: string, changes: Partial<ClaimedSubscription> = {}) {
  const subscription: ClaimedSubscription = {
    subscriptionId: 3,
    application: "billing",
    name: "invoices",
    handler,
    maxRetries: 5,
    secret: SECRET,
    settings: NO_SETTINGS,
    ...changes,
  };
  return { subscription, action: "order.created", payload: Buffer.from("{}"), caller: "somebody" };
}

test("over TLS and by a name, the times of each part are told", async () => {
  const receiver = await openReceiver({ tls: true });
  const url = receiver.url.replace("127.0.0.1", "handler.test");
  const { outcome, dns_ms, connect_ms, first_byte_ms, duration_ms } = await testsWith().send(requestTo(url));
  expect(outcome).toBe("delivered");
  for (const ms of [dns_ms, connect_ms, first_byte_ms, duration_ms]) {
    expect(ms).toEqual(expect.any(Number));
    expect(Number.isInteger(ms)).toBe(true);
  }
});

test("each test makes a connection of its own", async () => {
  const receiver = await openReceiver();
  const tests = testsWith();
  for (const _ of [1, 2]) expect((await tests.send(requestTo(receiver.url))).connect_ms).not.toBeNull();
  expect(receiver.accepted).toBe(2);
});

test("an address that deliveries may not go to gets nothing, and the rule is told", async () => {
  const receiver = await openReceiver();
  const refused = await testsWith(senderWith([])).send(requestTo(receiver.url));
  expect(refused).toMatchObject({ outcome: "failed", error_code: "address_refused", response: null });
  expect(refused.refusal).toContain("127.0.0.1");
  expect(receiver.accepted).toBe(0);
});

test("a secret that cannot be read sends nothing", async () => {
  const receiver = await openReceiver();
  const { error_code } = await testsWith().send(requestTo(receiver.url, { secret: undefined }));
  expect(error_code).toBe("secret_unreadable");
  expect(receiver.accepted).toBe(0);
});

test("during a rotation it is signed by both secrets, and neither is shown whole", async () => {
  const receiver = await openReceiver();
  const previous = { secret: PREVIOUS, untilMs: systemClock.now() + 60_000 };
  const shown = await testsWith().send(requestTo(receiver.url, { previous }));
  const { headers } = receiver.requests[0]!;
  expect(headers["webhook-signature"]!.split(" ")).toHaveLength(2);
  expect(headers["authorization"]).toBe(`Bearer ${PREVIOUS}`);
  expect(shown.request.headers["webhook-signature"]).toMatch(/^v1,[^ ]{8}… v1,[^ ]{8}…$/);
  expect(JSON.stringify(shown)).not.toContain(PREVIOUS);
});

test("the timeout is the subscription's", async () => {
  const receiver = await openReceiver();
  receiver.answer = () => "hang";
  const settings = { ...NO_SETTINGS, timeout_ms: 100 };
  const sent = await testsWith().send(requestTo(receiver.url, { settings }));
  expect(sent).toMatchObject({ outcome: "failed", error_code: "timeout" });
});

test("one caller gets half of the tests that may be under way, and another still its own", async () => {
  const receiver = await openReceiver();
  receiver.answer = () => "hang";
  const sender = senderWith();
  const tests = testsWith(sender);
  const send = (caller: string) => tests.send({ ...requestTo(receiver.url), caller });
  const running = [send("greedy"), send("greedy")];
  await expect(send("greedy")).rejects.toMatchObject({
    code: "rate_limited",
    details: { limit: 4, held: 2, others: 0 },
  });
  running.push(send("other"));
  await receiver.received(3);
  sender.close();
  for (const one of await Promise.all(running)) expect(one).toMatchObject({ error_code: "interrupted" });
  receiver.answer = () => ({});
  expect(await send("greedy")).toMatchObject({ outcome: "delivered" });
});
