import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { aboutSecret, Vault } from "../../src/store/secret-cipher.ts";

const key = randomBytes(32);
const vault = new Vault(key);
const OWNER = { application: "x", subscription: "s" };
const about = aboutSecret(OWNER, "secret");

describe("encryption of secrets", () => {
  it("decrypts what it encrypted, and encrypts the same text differently each time", () => {
    for (const text of ["whsec_abc", "", "é€😀", "x".repeat(5_000)]) {
      const [one, other] = [vault.seal(about, text), vault.seal(about, text)];
      expect(one).not.toBe(other);
      expect([vault.open(about, one), vault.open(about, other)]).toEqual([text, text]);
      expect(new Vault(key).open(about, one)).toBe(text);
      if (text.length > 3) expect(one).not.toContain(text);
    }
  });

  it("does not decrypt what is another's, for another purpose, under another key, or plain text", () => {
    const sealed = vault.seal(about, "whsec_abc");
    expect(vault.open(aboutSecret({ ...OWNER, subscription: "t" }, "secret"), sealed)).toBeUndefined();
    expect(vault.open(aboutSecret(OWNER, "bearer token"), sealed)).toBeUndefined();
    expect(new Vault(randomBytes(32)).open(about, sealed)).toBeUndefined();
    expect(vault.open(about, "whsec_abc")).toBeUndefined();
    expect(new Vault(undefined).open(about, sealed)).toBeUndefined();
  });

  it("does not decrypt what was changed anywhere, or truncated", () => {
    const sealed = vault.seal(about, "whsec_abc");
    const head = sealed.slice(0, sealed.lastIndexOf(" ") + 1);
    const bytes = Buffer.from(sealed.slice(head.length), "base64");
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at]! ^= 1;
      expect(vault.open(about, head + changed.toString("base64"))).toBeUndefined();
      expect(vault.open(about, head + bytes.subarray(0, at).toString("base64"))).toBeUndefined();
    }
    expect(vault.open(about, head)).toBeUndefined();
  });
});

it("without a key keeps texts as they are", () => {
  const plain = new Vault(undefined);
  expect(plain.seal(about, "whsec_abc")).toBe("whsec_abc");
  expect(plain.open(about, "whsec_abc")).toBe("whsec_abc");
});
