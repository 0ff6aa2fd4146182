import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parseScope } from "../../src/domain/token.ts";
import { hashToken, isTokenForm, mintToken } from "../../src/domain/token-secret.ts";

describe("mintToken", () => {
  it("makes evreg_, 30 random and 6 checksum characters", () => {
    for (let count = 0; count < 200; count++) {
      const token = mintToken(randomBytes);
      expect(token).toMatch(/^evreg_[0-9A-Za-z]{36}$/);
      expect(isTokenForm(token)).toBe(true);
    }
  });

  it("writes the checksum as the CRC-32 of the random part in base62", () => {
    // The CRC-32 of thirty "0" is 0x77e5db82 by any other tool, which is 2C8GjS in base62.
    expect(mintToken((count) => new Uint8Array(count))).toBe(`evreg_${"0".repeat(30)}2C8GjS`);
  });

  it("draws all characters alike", () => {
    const counts = new Map<string, number>();
    const tokens = 4_000;
    for (let count = 0; count < tokens; count++) {
      for (const character of mintToken(randomBytes).slice(6, 36)) {
        counts.set(character, (counts.get(character) ?? 0) + 1);
      }
    }
    expect(counts.size).toBe(62);
    const expected = (tokens * 30) / 62;
    // Bytes modulo 62 would favour eight characters by a quarter; six standard deviations are about 14 %.
    for (const count of counts.values()) expect(Math.abs(count / expected - 1)).toBeLessThan(0.15);
  });

  it("skips bytes that would favour some characters", () => {
    const bytes = [255, 248, 0, 61, 62, 247];
    let at = 0;
    const token = mintToken((count) => Uint8Array.from({ length: count }, () => bytes[at++ % bytes.length]!));
    expect(token.slice(6, 36)).toBe("0z0z".repeat(8).slice(0, 30));
  });
});

describe("isTokenForm", () => {
  const token = mintToken(randomBytes);

  it("refuses every change of one character", () => {
    for (let at = 6; at < token.length; at++) {
      const other = token[at] === "a" ? "b" : "a";
      expect(isTokenForm(token.slice(0, at) + other + token.slice(at + 1))).toBe(false);
    }
  });

  const shorter = ["", "evreg_", token.slice(1), token.slice(0, -1)];
  it.each([...shorter, `${token}a`, ` ${token}`, `${token}\n`, token.toUpperCase()])("refuses %j", (text) => {
    expect(isTokenForm(text)).toBe(false);
  });
});

describe("hashToken", () => {
  it("is SHA-256 in hex", () => {
    expect(hashToken("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});

describe("parseScope", () => {
  it.each([
    ["publish", { name: "publish" }],
    ["admin", { name: "admin" }],
    ["read:billing", { name: "read", application: "billing" }],
    ["write:a:b", { name: "write", application: "a:b" }],
    ["", undefined],
    ["read:", undefined],
    ["reads", undefined],
    ["toString", undefined],
    [" read", undefined],
    [":billing", undefined],
  ])("reads %j", (scope, expected) => {
    expect(parseScope(scope)).toEqual(expected);
  });
});
