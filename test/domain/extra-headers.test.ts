import { describe, expect, it } from "vitest";
import type { EvregError } from "../../src/domain/error.ts";
import { checkExtraHeaders } from "../../src/domain/subscription-settings.ts";
import { words } from "../support/words.ts";
import { refusal as refusalOf } from "./refusal.ts";

type Headers = Readonly<Record<string, string>>;
const check = (headers: Headers): void => checkExtraHeaders("headers", headers);
const refusal = (headers: Headers): EvregError => refusalOf(() => check(headers));

describe("headers of a subscription", () => {
  it.each([
    ["X-Team", "billing"],
    ["x-api-version", "2026-01-01"],
    ["Cookie", "a=b; c=d"],
    ["X-Empty", ""],
    ["X-Odd!#$%&'*+.^_`|~", "a b"],
  ])("may be %s: %s", (name, value) => {
    expect(() => check({ [name]: value })).not.toThrow();
  });

  it.each(
    words(`
    Authorization authorization Host HOST Content-Type content-length Content-Encoding User-Agent
    X-Evreg-Signature x-evreg-anything webhook-id Webhook-Signature Connection Transfer-Encoding Expect
    Upgrade TE Trailer Keep-Alive Proxy-Authorization Proxy-Connection Proxy proxy Date Accept-Encoding Via
    X_Evreg_Signature webhook_id CONTENT_LENGTH x-evreg_event transfer_encoding __proto__`),
  )("may not be %s, which the service or the connection sets", (name) => {
    const named = JSON.parse(`{${JSON.stringify(name)}: "x"}`) as Headers;
    expect(refusal(named)).toMatchObject({ code: "invalid" });
  });

  it("may not repeat a name in other capitals", () => {
    expect(refusal({ "X-Team": "a", "x-team": "b" })).toMatchObject({ code: "invalid" });
    expect(refusal({ "X-Team": "a", X_Team: "b" })).toMatchObject({ code: "invalid" });
  });

  it("may have 8 KiB in all, names and values, and not a byte more", () => {
    const full = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`X-Of-${at}`, "x".repeat(1_018)]));
    expect(() => check(full)).not.toThrow();
    expect(refusal({ ...full, "X-Of-7": "x".repeat(1_019) })).toMatchObject({
      code: "invalid",
      details: { field: "headers", message: expect.stringContaining("these are 8193") as string },
    });
  });

  it("refuse Authorization and name the bearer value", () => {
    expect(refusal({ Authorization: "Bearer x" }).message).toContain("bearer_token");
  });
});
