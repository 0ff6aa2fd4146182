import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { verify, type VerifyOptions, WebhookError, type WebhookHeaders } from "../../src/sdk/webhook.ts";
import { signedRequest } from "../support/signed-request.ts";

// What the engine sends, held against what a receiver makes of it.

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OLD = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
const BODY = signedRequest({ secret: SECRET, attempt: 3, nowMs: NOW_MS }).body;

function signed(previousSecret?: string): Record<string, string> {
  const { headers } = signedRequest({ secret: SECRET, previousSecret, attempt: 3, nowMs: NOW_MS });
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** The headers of which these are left, changed as told. */
function only(names: RegExp, change: Record<string, string> = {}, from = signed()): Record<string, string> {
  return { ...Object.fromEntries(Object.entries(from).filter(([name]) => names.test(name))), ...change };
}

function verdict(
  headers: WebhookHeaders,
  options: VerifyOptions & { secret?: string | string[]; body?: string | Uint8Array } = {},
): string {
  const { secret = SECRET, body = BODY, ...rest } = options;
  try {
    return verify(headers, body, secret, { nowMs: NOW_MS, ...rest }).event_id;
  } catch (error) {
    expect(error).toBeInstanceOf(WebhookError);
    const { code, message } = error as WebhookError;
    for (const told of [SECRET, SECRET.slice(6), "Zoë", ...Object.values(signed())]) {
      expect(message).not.toContain(told);
    }
    return code;
  }
}

const STANDARD = /^webhook-/;
const OWN = /^x-evreg-signature$/;

function payloadOf(payload: string): unknown {
  const { headers, body } = signedRequest({ secret: SECRET, payload, nowMs: NOW_MS });
  return (verify(headers, body, SECRET, { nowMs: NOW_MS }) as { readonly payload?: unknown }).payload;
}

describe("verify", () => {
  test("returns the body of what the engine signed", () => {
    expect(verify(signed(), BODY, SECRET, { nowMs: NOW_MS })).toEqual({
      event_id: "42",
      action: "user.created",
      payload: { name: "Zoë" },
      timestamp: "2026-01-02T03:04:05.000Z",
      delivery_attempt: 3,
    });
  });

  test("reads names with escapes as what they stand for, whatever else was read before", () => {
    payloadOf(String.raw`{"id":1,"kunde":"c","gr\\u0":1}`);
    expect(payloadOf(String.raw`{"id":1,"kunde":"c","gr\u00f6\u00dfe":5}`)).toEqual({
      id: 1,
      kunde: "c",
      größe: 5,
    });
  });

  test("accepts headers and bodies in any form that servers have", () => {
    expect(verdict(new Headers(signed()))).toBe("42");
    const asTyped = Object.entries(signed()).map(([name, value]) => [name.toUpperCase(), [value]] as const);
    expect(verdict(Object.fromEntries(asTyped))).toBe("42");
    expect(verdict(signed(), { body: BODY.toString() })).toBe("42");
    const copy = new Uint8Array(BODY).buffer;
    expect(verify(signed(), copy, SECRET, { nowMs: NOW_MS }).event_id).toBe("42");
    expect(verdict(signed(), { secret: `${SECRET}\n` })).toBe("42");
  });

  test("accepts either set of headers, and the standard one decides where it is present", () => {
    expect(verdict(only(STANDARD))).toBe("42");
    expect(verdict(only(OWN))).toBe("42");
    expect(verdict(only(OWN), { accept: "standard" })).toBe("missing_header");
    expect(verdict(signed(), { accept: "standard" })).toBe("42");
    for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
      const { [name]: _, ...rest } = signed();
      expect.soft(verdict(rest), name).toBe("missing_header");
      expect.soft(verdict({ ...rest, [name]: "" }), name).toBe("missing_header");
    }
    expect(verdict({})).toBe("missing_header");
  });

  test("accepts the old or new secret, or both, during a rotation", () => {
    const rotating = signed(OLD);
    for (const secret of [SECRET, OLD, [OTHER, SECRET], [OLD, OTHER]]) {
      expect.soft(verdict(rotating, { secret })).toBe("42");
    }
    expect(verdict(rotating, { secret: OTHER })).toBe("wrong_signature");
    // The form that holds one signature goes by the secret before until the overlap ends.
    const own = only(OWN, {}, rotating);
    expect(verdict(own, { secret: OLD })).toBe("42");
    expect(verdict(own, { secret: SECRET })).toBe("wrong_signature");
    expect(verdict(own, { secret: [SECRET, OLD] })).toBe("42");
  });

  test("refuses anything that was changed", () => {
    const { "webhook-signature": signature = "" } = signed();
    const hex = createHmac("sha256", SECRET).update("").digest("hex");
    const cases: [string, Record<string, string>, object?][] = [
      ["wrong_signature", signed(), { body: `${BODY.toString()} ` }],
      ["wrong_signature", signed(), { secret: OTHER }],
      ["wrong_signature", { ...signed(), "webhook-id": "evt_43_7" }],
      ["wrong_signature", { ...signed(), "webhook-timestamp": String(NOW_MS / 1_000 + 1) }],
      ["wrong_signature", { ...signed(), "webhook-signature": signature.slice(0, -1) }],
      ["wrong_signature", { ...signed(), "webhook-signature": `${signature}A` }],
      ["wrong_signature", { ...signed(), "webhook-signature": "v1," }],
      ["wrong_signature", { ...signed(), "webhook-signature": "v1,é" }],
      ["malformed_header", { ...signed(), "webhook-signature": signature.replace("v1,", "v1a,") }],
      ["malformed_header", { ...signed(), "webhook-timestamp": "1e9" }],
      ["malformed_header", { ...signed(), "webhook-timestamp": "-1" }],
      ["wrong_signature", only(OWN), { body: `${BODY.toString()} ` }],
      ["wrong_signature", only(OWN), { secret: OTHER }],
      ["wrong_signature", only(OWN, { "x-evreg-signature": `sha256=${hex}` })],
      ["malformed_header", only(OWN, { "x-evreg-signature": `sha1=${hex}` })],
      ["missing_header", only(OWN, { "x-evreg-signature": "" })],
    ];
    for (const [code, headers, options] of cases) {
      expect.soft(verdict(headers, options), JSON.stringify([headers, options])).toBe(code);
    }
    const twice = { ...signed(), "webhook-id": ["evt_42_7", "evt_42_7"] };
    expect(verdict(twice)).toBe("malformed_header");
  });

  test("finds a valid signature among others, and skips unknown versions", () => {
    const { "webhook-signature": right } = signed();
    expect(verdict({ ...signed(), "webhook-signature": `v1a,x v1,AAAA ${right} v2,y` })).toBe("42");
  });

  test("refuses a copy of an old request, and one from the future", () => {
    const late = { nowMs: NOW_MS + 300_000 };
    expect(verdict(signed(), late)).toBe("42");
    expect(verdict(signed(), { nowMs: NOW_MS + 300_001 })).toBe("too_old");
    expect(verdict(signed(), { nowMs: NOW_MS - 300_000 })).toBe("42");
    expect(verdict(signed(), { nowMs: NOW_MS - 300_001 })).toBe("too_new");
    expect(verdict(signed(), { ...late, toleranceMs: 1_000 })).toBe("too_old");
    expect(verdict(signed(), { toleranceMs: Number.NaN })).toBe("too_old");
    // A wrong signature is told before the time: who has no secret learns nothing of the clock.
    expect(verdict(signed(), { nowMs: 0, secret: OTHER })).toBe("wrong_signature");
  });

  test("reports a signed body that is not a delivery", () => {
    for (const body of ["[]", "null", "{}", "no JSON", new Uint8Array([0xff])]) {
      const hex = createHmac("sha256", SECRET).update(body).digest("hex");
      expect.soft(verdict({ "x-evreg-signature": `sha256=${hex}` }, { body })).toBe("not_a_delivery");
    }
  });

  test.each([undefined, "", "whsec_", "whsec_c2hvcnQ=", "secret", [], [SECRET, ""]])(
    "reports a secret of %j as the receiver's own mistake",
    (secret) => {
      const call = () => verify(signed(), BODY, secret as string, { nowMs: NOW_MS });
      expect(call).toThrow(TypeError);
      expect(call).toThrow(/whsec_ and base64/);
    },
  );

  test("reports a parsed body as the receiver's own mistake", () => {
    const parsed: unknown = JSON.parse(BODY.toString());
    const call = () => verify(signed(), parsed as string, SECRET, { nowMs: NOW_MS });
    expect(call).toThrow(/turn the parser off/);
  });
});
