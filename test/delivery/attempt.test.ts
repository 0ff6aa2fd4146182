import { createHmac } from "node:crypto";
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

const id = (change: Parameters<typeof headersOf>[0]): string | undefined => headersOf(change)["webhook-id"];

describe("the headers of a request", () => {
  it("signs the body with the whole secret as it is written", () => {
    const hex = createHmac("sha256", secret).update(body).digest("hex");
    expect(headersOf()["X-Evreg-Signature"]).toBe(`sha256=${hex}`);
  });

  it("signs with the secret before too while a rotation lasts, and X-Evreg-Signature with that alone", () => {
    const previousSecret = newSecret();
    const rotating = headersOf({ previousSecret });
    const { "webhook-signature": before } = headersOf({ secret: previousSecret });
    expect(rotating["webhook-signature"]).toBe(`${headersOf()["webhook-signature"]} ${before}`);
    const hex = createHmac("sha256", previousSecret).update(body).digest("hex");
    expect(rotating["X-Evreg-Signature"]).toBe(`sha256=${hex}`);
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
