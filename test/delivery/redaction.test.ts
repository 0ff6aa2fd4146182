import { describe, expect, it, test } from "vitest";
import { redact } from "../../src/delivery/redaction.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { CENSOR } from "../../src/runtime/logger.ts";
import type { Receiver } from "../support/receiver.ts";
import { type Bench, SECRET, useBench } from "./engine-setup.ts";

const KEY = "k+7/Zq=\"<x>&'\\%41 end";
const KEY_BYTES = Buffer.from(KEY);

/** A subscription that signs with it. */
function keys(secret: string) {
  return { secret, settings: NO_SETTINGS };
}

function inUrl(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `%${byte.toString(16)}`).join("");
}

describe("a secret in the text of an attempt", () => {
  it.each([
    ["as it is", KEY],
    ["in capitals", KEY.toUpperCase()],
    ["in JSON", JSON.stringify({ "x-key": KEY })],
    ["in JSON as PHP writes it", JSON.stringify(KEY).replaceAll("/", "\\/")],
    ["in JSON as .NET writes it", JSON.stringify(KEY).replaceAll("+", "\\u002B").replaceAll("<", "\\u003C")],
    ["in a URL", encodeURIComponent(KEY)],
    ["in a form", new URLSearchParams({ a: KEY }).toString()],
    ["in a URL, every sign of it", inUrl(KEY)],
    ["in hex", KEY_BYTES.toString("hex")],
    ["in base64", KEY_BYTES.toString("base64")],
    ["in base64 with one byte before it", Buffer.from(`a${KEY}zz`).toString("base64")],
    ["in base64 with two", Buffer.from(`ab${KEY}zz`).toString("base64url")],
    ["twice, one after the other", KEY + KEY],
    ["with its beginning only", KEY.slice(0, 12)],
  ])("is redacted %s", (_how, echoed) => {
    const text = redact(`got ${echoed}, ok`, keys(KEY));
    expect(text).toContain(CENSOR);
    expect(text).toMatch(/^got /);
    expect(text).toMatch(/, ok$/);
    // What base64 shares with its neighbours and the quotes of JSON is all that is left.
    expect(text.length).toBeLessThanOrEqual("got , ok".length + CENSOR.length + 12);
  });

  it("is redacted too where the size limit cuts it, in each spelling", () => {
    for (const spelling of [
      KEY,
      encodeURIComponent(KEY),
      JSON.stringify(KEY).slice(1),
      KEY_BYTES.toString("base64"),
    ]) {
      for (let shown = 0; shown <= spelling.length; shown += 1) {
        const kept = redact(`${"-".repeat(1_024 - shown)}${spelling}, more`, keys(KEY));
        const shows = kept.replace(/^-+/, "");
        expect(shows.slice(0, CENSOR.length), spelling.slice(0, shown)).toBe(CENSOR.slice(0, shown));
        expect(kept.length).toBeLessThanOrEqual(1_024);
      }
    }
  });

  it("is not shown where the text that is searched ends within it", () => {
    const headers = { "X-Long": "h".repeat(1_100) };
    const text = `${headers["X-Long"]}${"-".repeat(2_048 - 1_100 - 11)}${KEY}`;
    const kept = redact(text.slice(0, 2_048), { secret: KEY, settings: { ...NO_SETTINGS, headers } });
    expect(kept).toBe(CENSOR);
  });

  it("does not redact what only begins like it, nor values that anybody can guess", () => {
    expect(redact("k+7/Z", keys(KEY))).toBe("k+7/Z");
    const settings = { ...NO_SETTINGS, headers: { "X-Version": "1" } };
    expect(redact("version 1", { secret: SECRET, settings })).toBe("version 1");
  });

  it("is not shown by its beginning where what is read ends, though what was redacted has made room", () => {
    for (const secret of [KEY, "k+7/Zq=x"]) {
      for (const spelled of [secret, inUrl(secret)]) {
        for (let shift = 0; shift <= spelled.length; shift += 1) {
          const read = ("-".repeat(shift) + `${spelled} `.repeat(1_000)).slice(0, 2_048);
          expect(redact(read, keys(secret)), read.slice(-12)).not.toMatch(/k\+7|%6b%2b/);
        }
      }
    }
  });

  it("is redacted with the values of own headers, where these are long enough", () => {
    const settings = { ...NO_SETTINGS, headers: { "X-Team": "billing", "X-Key": "0123456789abcdef" } };
    const kept = redact("billing-team 0123456789ABCDEF 0123456789ab", { secret: SECRET, settings });
    expect(kept).toBe(`billing-team ${CENSOR} ${CENSOR}`);
  });

  it("is searched for in linear time", () => {
    const own = Array.from({ length: 40 }, (_, index) => "a".repeat(380 + index));
    const [secret = "", previous = "", bearer = ""] = own;
    const settings = { ...NO_SETTINGS, headers: Object.fromEntries(own.map((value) => [value, value])) };
    const subscription = { secret, previous: { secret: previous, untilMs: 0 }, bearer, settings };
    const texts = ["a".repeat(9_000), "%61".repeat(3_000), "&".repeat(9_000), `${"a".repeat(1_023)}b`];
    for (const text of texts) redact(text, subscription);
    const began = process.cpuUsage();
    for (let time = 0; time < 5; time += 1) for (const text of texts) redact(text, subscription);
    const { user, system } = process.cpuUsage(began);
    // Far more than it takes, and far less than the hundred milliseconds it took.
    expect((user + system) / 1_000 / (5 * texts.length)).toBeLessThan(10);
  });

  it("never makes a text longer than the size limit", () => {
    expect(redact("abcd ".repeat(204), keys("abcd"))).toHaveLength(1_024);
  });
});

describe("a handler that answers with the headers it was sent", () => {
  let bench: Bench;
  let receiver: Receiver;
  useBench((opened) => ({ bench, receiver } = opened));

  it("has none of its secrets stored, nor the one before a rotation", async () => {
    receiver.answer = ({ headers }) => ({ status: 500, body: JSON.stringify(headers) });
    const own = "own-header-value-1";
    const subscription = await bench.subscribe(receiver.url, 0, { headers: { "X-Api-Key": own } });
    const newer = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
    await bench.publish(subscription);
    await bench.once();
    await bench.store.catalog.rotateSecret(
      subscription.rowid,
      { secret: newer, overlapMs: 60_000 },
      bench.clock.now(),
    );
    await bench.publish(subscription);
    await bench.once();
    const listed = await bench.store.queue.list({ subscription: subscription.rowid, limit: 5 });
    const kept = JSON.stringify(await Promise.all(listed.map(({ rowid }) => bench.store.queue.find(rowid))));
    expect(receiver.requests).toHaveLength(2);
    expect(kept).toContain("x-api-key");
    expect(kept).toContain(CENSOR);
    for (const secret of [own, SECRET, newer]) expect(kept).not.toContain(secret.slice(6));
    expect(JSON.stringify(bench.log.lines)).not.toContain(own);
  });
});

test.each<[what: string, text: string, kept: string]>([
  ["as it is", "größer 😀\r\n", "größer 😀\r\n"],
  ["without NUL", "a\0b", "a\ufffdb"],
  ["1,024 bytes at most", "a".repeat(3_000), "a".repeat(1_024)],
  ["in whole characters", `a${"é".repeat(600)}`, `a${"é".repeat(511)}`],
  ["1,024 bytes without NUL", "\0".repeat(1_024), "\ufffd".repeat(341)],
])("the text of an answer is kept %s", (_, text, kept) => {
  expect(redact(text, keys(SECRET))).toBe(kept);
});
