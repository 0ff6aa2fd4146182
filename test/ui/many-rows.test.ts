import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { overflowOf, settled, useWorld, visit } from "./harness.ts";

// A server that is full: 100,000 events and deliveries, and more than a thousand of each other kind.

const EVENTS = 100_000;
const BATCH = 1_000;
const RECORDS = 1_050;
const REPLAYS = 60;
const AT_ONCE = 50;

async function times(count: number, each: (index: number) => Promise<unknown>): Promise<void> {
  for (let start = 0; start < count; start += AT_ONCE) {
    const length = Math.min(AT_ONCE, count - start);
    await Promise.all(Array.from({ length }, (_, index) => each(start + index)));
  }
}

/** Nobody pulls, so that all deliveries stay, and nothing else goes on. */
async function fill(evreg: Evreg): Promise<void> {
  const create = (action: string) =>
    evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
  await times(RECORDS, (index) => create(`kind-${index}.created`));
  const pull = (action: string, subscription: string) =>
    evreg.subscriptions.create({ application: "shop", subscription, action, mode: "pull" });
  await pull("kind-0.created", "warehouse");
  await times(RECORDS, (index) => pull("kind-1.created", `reader-${index}`));
  await times(RECORDS, (index) => evreg.tokens.create({ name: `token-${index}`, scopes: ["read"] }));
  const payload = RawJson.fromText('{"id":1}');
  await evreg.events.publish({ action: "kind-1.created", payload });
  const batch = Array.from({ length: BATCH }, () => ({ action: "kind-0.created", payload }));
  for (let done = 0; done < EVENTS; done += BATCH) await evreg.events.publishBatch(batch);
  await times(REPLAYS, (index) =>
    evreg.replays.start(index + 2, { status: "failed", from: new Date(0).toISOString() }),
  );
}
const world = useWorld({ prepare: fill, prepareMs: 240_000 });

/** Lists, and the link to what comes after their first rows. */
const LISTS = [
  ["#/events", "Older"],
  ["#/deliveries", "Older"],
  ["#/replays", "Older"],
  ["#/audit", "Older"],
  ["#/subscriptions", "After"],
  ["#/actions", "After"],
  ["#/tokens", "After"],
] as const;
const OTHERS = ["#/", "#/events/1", "#/subscriptions/1", "#/actions/kind-1.created", "#/doctor"] as const;
/** Which record stands first; its times and states may change meanwhile. */
const firstOf = (page: Page): Promise<string> =>
  page
    .locator("tbody tr")
    .first()
    .evaluate((row) => `${row.querySelector("a")?.hash} ${row.querySelector(".grow")?.textContent}`);
const MOST_ROWS = 100;
const MOST_ELEMENTS = 4_000;

async function sizeOf(page: Page): Promise<{ rows: number; elements: number }> {
  const rows = await page.locator("tbody tr").count();
  return { rows, elements: await page.locator("*").count() };
}

test(
  "each list shows its first rows, leads to the next ones and back, and never draws more than a hundred",
  { timeout: 180_000 },
  async () => {
    const page = await world.open("#/");
    const wrong: string[] = [];
    for (const [address, next] of LISTS) {
      await visit(page, address);
      const before = await firstOf(page);
      const { rows, elements } = await sizeOf(page);
      if (rows > MOST_ROWS || elements > MOST_ELEMENTS)
        wrong.push(`${address}: ${rows} rows, ${elements} elements`);
      const link = page.getByRole("link", { name: next });
      if ((await link.count()) === 0) {
        wrong.push(`${address}: no ${next}`);
        continue;
      }
      await link.click();
      await expect.poll(() => firstOf(page)).not.toBe(before);
      await settled(page);
      await page.goBack();
      await expect.poll(async () => `${address} ${await firstOf(page)}`).toBe(`${address} ${before}`);
    }
    expect(wrong).toEqual([]);
  },
);

test("a record that thousands belong to is no longer than others", { timeout: 180_000 }, async () => {
  const page = await world.open("#/");
  const wrong: string[] = [];
  for (const address of OTHERS) {
    await visit(page, address);
    const { rows, elements } = await sizeOf(page);
    if (rows > MOST_ROWS || elements > MOST_ELEMENTS)
      wrong.push(`${address}: ${rows} rows, ${elements} elements`);
    if ((await overflowOf(page)) > 0) wrong.push(`${address}: too wide`);
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find or go to" }).fill("kind-99");
  await expect.poll(() => page.getByRole("option").count()).toBe(11);
  expect(wrong).toEqual([]);
});
