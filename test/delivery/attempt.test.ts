import { createHmac } from "node:crypto";
import { Webhook, WebhookVerificationError } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { systemRandom } from "../../src/runtime/clock.ts";
import { signedRequest } from "../support/signed-request.ts";

const newSecret = (): string => `whsec_${Buffer.from(systemRandom.bytes(32)).toString("base64")}`;

const secret = newSecret();
const delivery = { secret, attempt: 3, nowMs: Date.now(), timestampedMs: 0 };

/** The headers of the delivery, or of one that differs from it so. */
function headersOf(change: Partial<Parameters<typeof signedRequest>[0]> = {}): Record<string, string> {
  return signedRequest({ ...delivery, ...change }).headers;
}

const { body } = signedRequest(delivery);

const verify = (key: string, bytes: Buffer, sent: Record<string, string>) => () =>
  new Webhook(key).verify(bytes, sent);

const id = (change: Parameters<typeof headersOf>[0]): string | undefined => headersOf(change)["webhook-id"];

describe("the headers of a request", () => {
  it("signs the body with the whole secret as it is written", () => {
    const hex = createHmac("sha256", secret).update(body).digest("hex");
    expect(headersOf()["X-Evreg-Signature"]).toBe(`sha256=${hex}`);
  });

  it("fails the verification of Standard Webhooks for another body, another secret or another id", () => {
    const headers = headersOf();
    expect(verify(secret, Buffer.from(`${body.toString()} `), headers)).toThrow(WebhookVerificationError);
    expect(verify(newSecret(), body, headers)).toThrow(WebhookVerificationError);
    expect(verify(secret, body, { ...headers, "webhook-id": "evt_43_7" })).toThrow(WebhookVerificationError);
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
    expect(headersOf({ nowMs: 1_700_000_000_999 })["webhook-timestamp"]).toBe("1700000000");
  });
});

describe("the body of a request", () => {
  it.each([
    '{ "b" : 1,\n\t"a" : 2 }',
    '{"2":"b","1":"a"}',
    '{"n":12345678901234567890,"m":1e400,"z":-0.0,"k":1.10}',
    '{"t":"\\u00e9\\/\\ud83d\\ude00 é 😀"}',
    '{"__proto__":{"a":1},"constructor":2}',
  ])("keeps the bytes of %s", (payload) => {
    const { body: bytes } = signedRequest({ secret, payload });
    const at = bytes.indexOf('"payload":') + '"payload":'.length;
    expect(bytes.subarray(at, at + Buffer.byteLength(payload)).equals(Buffer.from(payload))).toBe(true);
    expect(() => JSON.parse(bytes.toString()) as unknown).not.toThrow();
  });
});
