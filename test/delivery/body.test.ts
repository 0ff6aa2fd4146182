import { describe, expect, it } from "vitest";
import { signedRequest } from "../support/signed-request.ts";

const timestampedMs = Date.parse("2026-11-21T10:00:00.007Z");
const body = (payload: string, attempt = 1): Buffer =>
  signedRequest({ secret: "whsec_AAAA", payload, timestampedMs, attempt }).body;

describe("the body of a request", () => {
  it("has the specification's members in its order", () => {
    expect(body('{"a":1}', 2).toString()).toBe(
      '{"event_id":"42","action":"user.created","payload":{"a":1},"timestamp":"2026-11-21T10:00:00.007Z","delivery_attempt":2}',
    );
    expect(Object.keys(JSON.parse(body("{}").toString()) as object)).toEqual([
      "event_id",
      "action",
      "payload",
      "timestamp",
      "delivery_attempt",
    ]);
  });

  it.each([
    '{ "b" : 1,\n\t"a" : 2 }',
    '{"2":"b","1":"a"}',
    '{"n":12345678901234567890,"m":1e400,"z":-0.0,"k":1.10}',
    '{"t":"\\u00e9\\/\\ud83d\\ude00 é 😀"}',
    '{"__proto__":{"a":1},"constructor":2}',
  ])("keeps the bytes of %s", (payload) => {
    const bytes = body(payload);
    const at = bytes.indexOf('"payload":') + '"payload":'.length;
    expect(bytes.subarray(at, at + Buffer.byteLength(payload)).equals(Buffer.from(payload))).toBe(true);
    expect(() => JSON.parse(bytes.toString()) as unknown).not.toThrow();
  });
});
