import { createHmac } from "node:crypto";
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { deliveryHeaders } from "../../src/delivery/request.ts";
import { systemRandom } from "../../src/runtime/clock.ts";

const newSecret = (): string => `whsec_${Buffer.from(systemRandom.bytes(32)).toString("base64")}`;

const secret = newSecret();
const delivery: Parameters<typeof deliveryHeaders>[0] = {
  eventId: 42,
  subscriptionId: 7,
  action: "user.created",
  attempt: 3,
  body: Buffer.from('{"event_id":"42","action":"user.created","payload":{"name":"Zoë"}}'),
  secret,
  nowMs: Date.now(),
  version: "1.2.3",
};

const verify = (key: string, bytes: Buffer, sent: Record<string, string>) => () =>
  new Webhook(key).verify(bytes, sent);

const id = (change: Partial<typeof delivery>): string | undefined =>
  deliveryHeaders({ ...delivery, ...change })["webhook-id"];

describe("deliveryHeaders", () => {
  it("has the specified headers under the service's own name", () => {
    expect(deliveryHeaders(delivery)).toMatchObject({
      "Content-Type": "application/json",
      Authorization: `Bearer ${secret}`,
      "X-Evreg-Event": "user.created",
      "X-Evreg-Delivery": "42_3",
      "User-Agent": "evreg/1.2.3",
    });
  });

  it("leaves out what a subscription of earlier had that it may not have", () => {
    const extra = { Proxy: "http://evil.example", "X-Team": "a" };
    const headers = deliveryHeaders({ ...delivery, extra });
    expect([headers["Proxy"], headers["X-Team"]]).toEqual([undefined, "a"]);
  });

  it("signs the body with the whole secret as it is written", () => {
    const hex = createHmac("sha256", secret).update(delivery.body).digest("hex");
    expect(deliveryHeaders(delivery)["X-Evreg-Signature"]).toBe(`sha256=${hex}`);
  });

  it("passes the verification of the Standard Webhooks library", () => {
    const body = Buffer.from(delivery.body);
    expect(new Webhook(secret).verify(body, deliveryHeaders(delivery))).toMatchObject({ event_id: "42" });
  });

  it("fails that verification for another body, another secret or another id", () => {
    const headers = deliveryHeaders(delivery);
    const body = Buffer.from(delivery.body);
    expect(verify(secret, Buffer.from(`${body.toString()} `), headers)).toThrow(WebhookVerificationError);
    expect(verify(newSecret(), body, headers)).toThrow(WebhookVerificationError);
    expect(verify(secret, body, { ...headers, "webhook-id": "evt_43_7" })).toThrow(WebhookVerificationError);
  });

  it("verifies for receivers of the old and the new secret while both are in force", () => {
    const old = newSecret();
    const headers = deliveryHeaders({ ...delivery, previousSecret: old });
    const body = Buffer.from(delivery.body);
    for (const key of [secret, old]) expect(new Webhook(key).verify(body, headers)).toBeDefined();
    expect(verify(newSecret(), body, headers)).toThrow(WebhookVerificationError);
    expect(headers["webhook-signature"]).toMatch(/^v1,\S{44} v1,\S{44}$/);
  });

  it("signs with the old secret while both are in force where a header holds one value", () => {
    const old = newSecret();
    const { Authorization, "X-Evreg-Signature": signature } = deliveryHeaders({
      ...delivery,
      previousSecret: old,
    });
    const byOld = deliveryHeaders({ ...delivery, secret: old });
    expect({ Authorization, "X-Evreg-Signature": signature }).toEqual({
      Authorization: `Bearer ${old}`,
      "X-Evreg-Signature": byOld["X-Evreg-Signature"],
    });
  });

  it("contains the subscription's bearer value, or none, whichever secrets are in force", () => {
    for (const secrets of [{}, { previousSecret: newSecret() }]) {
      const own = deliveryHeaders({ ...delivery, ...secrets, bearer: "mine" });
      expect(own["Authorization"]).toBe("Bearer mine");
      expect(deliveryHeaders({ ...delivery, ...secrets, bearer: null })).not.toHaveProperty("Authorization");
    }
  });

  it("has the same id in each retry, and different ones for each subscription and event", () => {
    expect(id({ attempt: 4 })).toBe(id({}));
    expect(
      new Set([
        id({}),
        id({ subscriptionId: 8 }),
        id({ eventId: 43 }),
        id({ eventId: 427, subscriptionId: 1 }),
      ]).size,
    ).toBe(4);
  });

  it("gives the timestamp in whole seconds of the attempt", () => {
    expect(deliveryHeaders({ ...delivery, nowMs: 1_700_000_000_999 })["webhook-timestamp"]).toBe(
      "1700000000",
    );
  });
});
