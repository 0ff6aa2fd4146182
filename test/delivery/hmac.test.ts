import { createHmac, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { HmacKey } from "../../src/delivery/request.ts";

function signed(key: Buffer, data: string): string {
  return new HmacKey(key).sign("", Buffer.from(data), "hex");
}

describe("a signature", () => {
  it("is the HMAC-SHA256 of prefix and body, whatever the lengths", () => {
    for (const keyBytes of [0, 1, 32, 63, 64, 65, 200]) {
      const secret = randomBytes(keyBytes);
      const key = new HmacKey(secret);
      for (const bodyBytes of [300, 0, 1, 55, 56, 64, 16_320, 100_000, 2]) {
        const body = randomBytes(bodyBytes);
        for (const prefix of ["", "evt_1_2.1700000000."]) {
          for (const encoding of ["hex", "base64"] as const) {
            const expected = createHmac("sha256", secret).update(prefix).update(body).digest(encoding);
            expect(key.sign(prefix, body, encoding)).toBe(expected);
          }
        }
      }
    }
  });

  it("has the bytes of the test vectors of RFC 4231", () => {
    expect(signed(Buffer.alloc(20, 0x0b), "Hi There")).toBe(
      "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    );
    expect(signed(Buffer.from("Jefe"), "what do ya want for nothing?")).toBe(
      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    );
    expect(signed(Buffer.alloc(131, 0xaa), "Test Using Larger Than Block-Size Key - Hash Key First")).toBe(
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    );
  });
});
