import { randomBytes } from "node:crypto";
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { openReceiver } from "../support/open-receiver.ts";
import type { ReceivedRequest, Receiver } from "../support/receiver.ts";
import type { Changes } from "../support/server.ts";
import { closing, dataFolder, LOOPBACK, ORDER_PLACED, start } from "./setup.ts";

// Over HTTP, to a receiver that verifies as receivers do, with the Standard Webhooks library.

const HOUR_MS = 3_600_000;
const OPEN: Changes = {
  auth: { mode: "off" },
  delivery: LOOPBACK,
};
const KEY = randomBytes(32).toString("base64");

let receiver: Receiver;
let clock: ManualClock;
beforeEach(async () => {
  receiver = await openReceiver();
  clock = new ManualClock(Date.now());
});

async function serve(changes: Changes): Promise<Evreg> {
  const server = await start(dataFolder(), { ...OPEN, ...changes }, { clock });
  return closing(connect({ url: server.url }));
}

async function deliver(evreg: Evreg): Promise<ReceivedRequest> {
  const count = receiver.requests.length;
  await evreg.events.publish({ action: ORDER_PLACED.action, payload: RawJson.fromText('{"id":"A-1"}') });
  const requests = await receiver.received(count + 1);
  return requests[count]!;
}

/** The library takes signatures of the last five minutes, and the clock here is moved by hours. */
function verifies(secret: string, { headers, body }: ReceivedRequest): boolean {
  const now = Date.now;
  Date.now = () => clock.now();
  try {
    new Webhook(secret).verify(body, { ...headers });
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  } finally {
    Date.now = now;
  }
}

describe.each([
  ["plain", {}],
  ["encrypted", { encryption: { key: KEY } }],
] satisfies [string, Changes][])("secrets stored %s", (_, changes) => {
  test("during a rotation receivers of the old and the new secret verify, and afterwards only of the new one", async () => {
    const evreg = await serve(changes);
    await evreg.actions.create(ORDER_PLACED);
    const named = { application: "billing", subscription: "invoices", action: ORDER_PLACED.action };
    const created = await evreg.subscriptions.create({ ...named, handler: receiver.url });
    const { rowid, secret: old } = created.data;
    const first = await deliver(evreg);
    expect([verifies(old, first), first.headers["authorization"]]).toEqual([true, `Bearer ${old}`]);

    const { secret } = (await evreg.subscriptions.rotateSecret(rowid, { overlap_ms: HOUR_MS })).data;
    const during = await deliver(evreg);
    expect([verifies(old, during), verifies(secret, during)]).toEqual([true, true]);
    expect(during.headers["authorization"]).toBe(`Bearer ${old}`);

    await clock.advance(HOUR_MS);
    const after = await deliver(evreg);
    expect([verifies(old, after), verifies(secret, after)]).toEqual([false, true]);
    expect(after.headers["authorization"]).toBe(`Bearer ${secret}`);

    const { secret: last } = (await evreg.subscriptions.rotateSecret(rowid, { overlap_ms: 0 })).data;
    const at = await deliver(evreg);
    expect([secret, last].map((one) => verifies(one, at))).toEqual([false, true]);
  });

  test("a handler gets its own bearer value, during a rotation too, and none where there is none", async () => {
    const evreg = await serve(changes);
    await evreg.actions.create(ORDER_PLACED);
    const named = { application: "billing", subscription: "invoices", action: ORDER_PLACED.action };
    const { data } = await evreg.subscriptions.create({
      ...named,
      handler: receiver.url,
      bearer_token: "opaque:value/of=the+receiver",
    });
    const bearer = async (): Promise<string | undefined> => (await deliver(evreg)).headers["authorization"];
    expect(await bearer()).toBe("Bearer opaque:value/of=the+receiver");
    await evreg.subscriptions.rotateSecret(data.rowid);
    expect(await bearer()).toBe("Bearer opaque:value/of=the+receiver");
    await evreg.subscriptions.update(data.rowid, { bearer: "none" });
    expect(await bearer()).toBeUndefined();
    await evreg.subscriptions.update(data.rowid, { bearer: "secret" });
    expect(await bearer()).toBe(`Bearer ${data.secret}`);
  });
});
