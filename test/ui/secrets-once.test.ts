import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { register } from "../support/records.ts";
import { subscribe } from "./filled.ts";
import { turnTo, useWorld } from "./harness.ts";

// A secret is shown once: no key and no click takes it from somebody who has not kept it.

const world = useWorld({
  async prepare(evreg) {
    await register(evreg, "order.created");
    await subscribe(evreg, "welcome");
  },
});

const secret = (page: Page) => page.getByText(/^(whsec|evreg)_\S+$/);
const stay = (page: Page) => page.getByRole("dialog").getByRole("button", { name: "Stay" });

const more = (page: Page) => page.locator("summary[aria-label=More]");

async function rotated(): Promise<Page> {
  const page = await world.open("#/subscriptions");
  await page.getByRole("link", { name: "mail/welcome" }).click();
  await more(page).click();
  await page.getByRole("link", { name: "Rotate the secret…" }).click();
  await page.getByRole("button", { name: "Rotate the secret" }).click();
  await secret(page).waitFor();
  return page;
}

test("going back from a rotation asks first, and no more once the secret was copied", async () => {
  const page = await rotated();
  await page.evaluate(() => history.back());
  await stay(page).click();
  expect(await secret(page).isVisible()).toBe(true);
  expect(page.url()).toMatch(/#\/subscriptions\/1\/rotate$/);
  await page.getByRole("button", { name: "Copy the secret" }).click();
  await page.getByRole("link", { name: "Back to it" }).click();
  await page.getByRole("heading", { level: 1, name: "mail/welcome" }).waitFor();
});

test("a click elsewhere asks before it leads away from a new secret", async () => {
  const page = await world.open("#/subscriptions/new");
  await page.getByLabel("Application").fill("mail");
  await page.getByLabel("Name").fill("again");
  await page.getByLabel("Action").fill("order.created");
  await page.getByLabel("Handler").fill("http://127.0.0.1:9/");
  await page.getByRole("button", { name: "Create it" }).click();
  await secret(page).waitFor();
  await page.getByRole("link", { name: "Events" }).click();
  await stay(page).click();
  expect(await secret(page).isVisible()).toBe(true);
  expect(page.url()).toMatch(/#\/subscriptions\/new$/);
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await stay(page).click();
  await page.getByRole("link", { name: "Events" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Leave", exact: true }).click();
  await page.getByRole("combobox", { name: "Filter events" }).waitFor();
});

test("a new token asks as well, and no more once it is kept; a reload asks the browser's way", async () => {
  const page = await world.open("#/tokens/new", { expected: /^asked in a dialog: $/ });
  await page.getByLabel("Name").fill("grafana");
  await page.getByRole("button", { name: "Create it" }).click();
  await secret(page).waitFor();
  const asked = page.waitForEvent("dialog");
  await page.evaluate(() => setTimeout(() => location.reload(), 0));
  expect((await asked).type()).toBe("beforeunload");
  expect(await secret(page).isVisible()).toBe(true);
  await page.getByRole("link", { name: "Overview" }).click();
  await stay(page).click();
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("heading", { level: 1, name: "Nothing needs a person" }).waitFor();
});

test("the menu of a subscription stays within a narrow screen", async () => {
  const page = await world.open("#/subscriptions/1", { width: 390, height: 844 });
  await more(page).click();
  const menu = page.locator("main .menu > ul");
  const { x, width } = (await menu.boundingBox())!;
  expect(x).toBeGreaterThanOrEqual(0);
  expect(x + width).toBeLessThanOrEqual(390);
  await page.getByRole("button", { name: "Delete…" }).click({ trial: true });
});

test("a button that does nothing looks like that, also under the pointer", async () => {
  const page = await world.open("#/actions/order.created/settings");
  const button = page.getByRole("button", { name: "Change it" }).first();
  const colour = (): Promise<string> =>
    button.evaluate((element) => getComputedStyle(element).backgroundColor);
  const disabled = await colour();
  await button.hover({ force: true });
  expect(await colour()).toBe(disabled);
  await page.getByRole("radio", { name: /consumer/ }).check();
  await expect.poll(colour).not.toBe(disabled);
  await turnTo(page, "#/subscriptions/1");
  await more(page).click();
  await page.getByRole("button", { name: "Delete…" }).click();
  const remove = page.getByRole("button", { name: "Delete it" });
  expect(await remove.evaluate((element) => getComputedStyle(element).backgroundColor)).toBe(disabled);
});
