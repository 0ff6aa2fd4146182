import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { parseEncryptionKey } from "../../src/domain/formats.ts";

it("reads 32 bytes as hex, base64 and base64url", () => {
  for (let round = 0; round < 50; round += 1) {
    const key = randomBytes(32);
    const texts = [
      key.toString("hex"),
      key.toString("hex").toUpperCase(),
      key.toString("base64"),
      key.toString("base64").replace("=", ""),
      key.toString("base64url"),
    ];
    for (const text of texts) expect(Buffer.from(parseEncryptionKey(text) ?? "")).toEqual(key);
  }
});

it.each([
  "",
  "secret",
  "ab".repeat(31),
  "ab".repeat(33),
  `${"ab".repeat(31)}zz`,
  randomBytes(31).toString("base64"),
  randomBytes(33).toString("base64"),
  `${"A".repeat(42)}!=`,
  "correct horse battery staple correct horse!!",
])("refuses %j", (text) => {
  expect(parseEncryptionKey(text)).toBeUndefined();
});
