import { describe, expect, it } from "vitest";
import { responseText } from "../../src/delivery/redaction.ts";

const bytesOf = (text: string | undefined): number => Buffer.byteLength(text ?? "");

describe("responseText", () => {
  it("is the answer as text", () => {
    expect(responseText(Buffer.from("größer 😀\r\n"), false)).toBe("größer 😀\r\n");
    expect(responseText(Buffer.from("\ufeffa"), false)).toBe("\ufeffa");
  });

  it("is empty without an answer", () => {
    expect(responseText(Buffer.alloc(0), false)).toBeUndefined();
  });

  it("replaces NUL and invalid UTF-8", () => {
    expect(responseText(Buffer.from([0x61, 0, 0x62, 0xff, 0xc3, 0x28]), false)).toBe("a\ufffdb\ufffd\ufffd(");
    expect(responseText(Buffer.from([0xed, 0xa0, 0x80]), false)).toMatch(/^\ufffd+$/);
  });

  it("drops a truncated last character, and replaces one that was sent so", () => {
    const cut = Buffer.from("aé").subarray(0, 2);
    expect(responseText(cut, true)).toBe("a");
    expect(responseText(cut, false)).toBe("a\ufffd");
  });

  it("never has more than 1,024 bytes, nor part of a character", () => {
    expect(responseText(Buffer.alloc(1_024, "a"), true)).toHaveLength(1_024);
    const replaced = responseText(Buffer.alloc(1_024, 0xff), true);
    expect(replaced).toBe("\ufffd".repeat(341));
    expect(bytesOf(replaced)).toBeLessThanOrEqual(1_024);
    expect(bytesOf(responseText(Buffer.alloc(1_024), false))).toBeLessThanOrEqual(1_024);
  });
});
