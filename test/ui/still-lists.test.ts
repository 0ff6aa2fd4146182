import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { publish, register } from "../support/records.ts";
import { failed, subscribe } from "./filled.ts";
import { settled, useWorld } from "./harness.ts";

// What somebody is about to press stays where it is.

const world = useWorld({
  async prepare(evreg) {
    for (const action of ["order.created", "order.paid"]) await register(evreg, action);
    await subscribe(evreg, "reserve", { mode: "pull" });
    for (let count = 0; count < 5; count += 1) await publish(evreg);
  },
});

const topOf = async (place: Locator): Promise<number> => (await place.boundingBox())!.y;
const newer = (page: Page) => page.getByRole("button", { name: /newer/ });
/** Beside the list. */
const leave = (page: Page): Promise<void> => page.mouse.move(2, 2);

/** Returns once the page has read them. */
async function moreEvents(page: Page, count: number): Promise<void> {
  for (let made = 0; made < count; made += 1) await publish(world.evreg);
  await newer(page).getByText(`${count} newer events`).waitFor();
}

test("an event under the pointer stays there, and new ones wait above until the pointer is gone", async () => {
  const page = await world.open("#/events");
  await settled(page);
  const row = page.getByRole("row").nth(2);
  await row.hover();
  const [link, top] = [await row.getByRole("link").getAttribute("href"), await topOf(row)];
  await moreEvents(page, 3);
  expect(await row.getByRole("link").getAttribute("href")).toBe(link);
  expect(await topOf(row)).toBe(top);
  await leave(page);
  await expect.poll(() => newer(page).count(), { timeout: 10_000 }).toBe(0);
  expect(await page.getByRole("row").nth(5).getByRole("link").getAttribute("href")).toBe(link);
});

test("an event that has the focus stays there, and new ones come when they are asked for", async () => {
  const page = await world.open("#/events");
  await settled(page);
  await leave(page);
  const link = page.getByRole("row").nth(1).getByRole("link");
  await link.focus();
  const address = await link.getAttribute("href");
  await moreEvents(page, 2);
  expect(await link.getAttribute("href")).toBe(address);
  // The list hears the key a moment after it shows the button.
  const pressed = async (): Promise<string | null> => {
    await page.keyboard.press("n");
    return link.getAttribute("href");
  };
  await expect.poll(pressed, { timeout: 10_000 }).not.toBe(address);
});

test("on the overview nothing moves what is below it by itself", async () => {
  const page = await world.open("#/");
  await settled(page);
  const chart = page.getByRole("heading", { name: /^Last/ });
  await page.getByRole("button", { name: "24 h" }).hover();
  const top = await topOf(chart);
  const { rowid } = await subscribe(world.evreg, "invoices", { action: "order.paid", active: false });
  await publish(world.evreg, "order.paid");
  await page.getByRole("heading", { level: 1, name: "1 thing needs a person" }).waitFor();
  const show = page.getByRole("button", { name: "1 more needs a person" });
  await show.waitFor();
  expect(await topOf(chart)).toBe(top);
  await show.click();
  const list = page.getByRole("region", { name: "What needs a person" });
  await list.getByRole("link", { name: "mail/invoices" }).waitFor();
  expect(await topOf(chart)).toBeGreaterThan(top);

  // It is well again, and yet its row is there as long as somebody may be about to press in it.
  await list.hover();
  const below = await topOf(chart);
  await world.evreg.subscriptions.update(rowid, { active: true });
  await page.getByRole("heading", { level: 1, name: "Nothing needs a person" }).waitFor();
  await list.getByText("It needs nobody any more.").waitFor();
  expect(await topOf(chart)).toBe(below);
  await leave(page);
  await expect.poll(() => list.count(), { timeout: 10_000 }).toBe(0);
});

test("the overview's subscriptions keep their places under the pointer", async () => {
  const paused = { max_retries: 0, active: false };
  await subscribe(world.evreg, "welcome", paused);
  const { rowid } = await subscribe(world.evreg, "worst", paused);
  const page = await world.open("#/?range=5m");
  await settled(page);
  const rows = page.getByRole("table", { name: "Subscriptions, the worst first" }).getByRole("row");
  const names = () => rows.evaluateAll((all) => all.map((row) => row.querySelector("a")?.textContent));
  await rows.filter({ hasText: "mail/worst" }).hover();
  const before = await names();
  await world.evreg.subscriptions.update(rowid, { active: true });
  await publish(world.evreg);
  await failed(world.evreg, 1);
  await rows.filter({ hasText: "mail/worst" }).getByText("Failing").waitFor();
  expect(await names()).toEqual(before);
  await leave(page);
  await expect.poll(names, { timeout: 10_000 }).not.toEqual(before);
});
