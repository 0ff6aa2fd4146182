import { describe, expect, it } from "vitest";
import { censor, secretsOf } from "../../src/delivery/censor.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { CENSOR } from "../../src/runtime/scrub.ts";
import { type Bench, SECRET, useBench } from "./engine-setup.ts";
import type { Receiver } from "../support/receiver.ts";

const KEY = "k+7/Zq=\"<x>&'\\%41 end";
const bytes = Buffer.from(KEY);

function inUrl(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `%${byte.toString(16)}`).join("");
}

function inHtml(text: string): string {
  const names: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replaceAll(/[&<>"']/g, (sign) => names[sign]!);
}

describe("a value in the text of an attempt", () => {
  it.each([
    ["as it is", KEY],
    ["in capitals", KEY.toUpperCase()],
    ["in JSON", JSON.stringify({ "x-key": KEY })],
    ["in JSON as PHP writes it", JSON.stringify(KEY).replaceAll("/", "\\/")],
    ["in JSON as .NET writes it", JSON.stringify(KEY).replaceAll("+", "\\u002B").replaceAll("<", "\\u003C")],
    ["in a URL", encodeURIComponent(KEY)],
    ["in a form", new URLSearchParams({ a: KEY }).toString()],
    ["in a URL, every sign of it", inUrl(KEY)],
    ["in HTML", inHtml(KEY)],
    ["in hex", bytes.toString("hex")],
    ["in base64", bytes.toString("base64")],
    ["in base64 with one byte before it", Buffer.from(`a${KEY}zz`).toString("base64")],
    ["in base64 with two", Buffer.from(`ab${KEY}zz`).toString("base64url")],
    ["twice, one after the other", KEY + KEY],
  ])("is gone %s", (_how, echoed) => {
    const text = censor(`got ${echoed}, ok`, [KEY]);
    expect(text).toContain(CENSOR);
    expect(text).toMatch(/^got /);
    expect(text).toMatch(/, ok$/);
    // What base64 shares with its neighbours and the quotes of JSON is all that is left.
    expect(text.length).toBeLessThanOrEqual("got , ok".length + CENSOR.length + 12);
  });

  it("is gone with its beginning where the limit of what is kept cuts it, in each spelling", () => {
    for (const spelling of [
      KEY,
      encodeURIComponent(KEY),
      JSON.stringify(KEY).slice(1),
      bytes.toString("base64"),
    ]) {
      for (let shown = 4; shown < spelling.length; shown += 1) {
        const text = ("-".repeat(1_024 - shown) + spelling).slice(0, 1_024);
        const kept = censor(text, [KEY]);
        // Three characters of it, which may be escaped, tell nothing.
        expect(kept, spelling.slice(0, shown)).toMatch(shown > 9 ? /^-+\[red/ : /^-+(\[red|[^[]{0,9}$)/);
        expect(kept.length).toBeLessThanOrEqual(1_024);
      }
    }
  });

  it("is no reason to touch what is not cut and only begins like it, nor values that anybody can guess", () => {
    expect(censor("k+7/Z", [KEY])).toBe("k+7/Z");
    const subscription = { subscriptionId: 1, handler: "", maxRetries: 0, secret: SECRET };
    expect(
      secretsOf({ ...subscription, settings: { ...NO_SETTINGS, headers: { "X-Version": "1" } } }),
    ).toEqual([SECRET]);
  });

  it("leaves a text that is no longer than what is kept", () => {
    expect(censor("abcd ".repeat(204), ["abcd"])).toHaveLength(1_024);
  });
});

describe("a handler that answers with the headers it was sent", () => {
  let bench: Bench;
  let receiver: Receiver;
  useBench((opened) => ({ bench, receiver } = opened));

  it("has none of its secrets kept, the one before a rotation neither", async () => {
    receiver.answer = ({ headers }) => ({ status: 500, body: JSON.stringify(headers) });
    const own = "own-header-value-1";
    const subscription = await bench.subscribe(receiver.url, 0, { headers: { "X-Api-Key": own } });
    const newer = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
    await bench.publish(subscription);
    await bench.engine().runOnce();
    await bench.store.rotateSecret(
      subscription.rowid,
      { secret: newer, overlapMs: 60_000 },
      bench.clock.now(),
    );
    await bench.publish(subscription);
    await bench.engine().runOnce();
    const listed = await bench.store.listDeliveries({ subscription: subscription.rowid, limit: 5 });
    const kept = JSON.stringify(
      await Promise.all(listed.map(({ rowid }) => bench.store.findDelivery(rowid))),
    );
    expect(receiver.requests).toHaveLength(2);
    expect(kept).toContain("x-api-key");
    expect(kept).toContain(CENSOR);
    for (const secret of [own, SECRET, newer]) expect(kept).not.toContain(secret.slice(6));
    expect(JSON.stringify(bench.log.lines)).not.toContain(own);
  });
});
