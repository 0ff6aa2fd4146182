import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { useWorld } from "./harness.ts";

const world = useWorld({ dev: false });

const REFUSED = /status of 401/;
const pageShows = (page: Page) => page.locator("nav").first();

test("a token that is pasted signs this tab in, a wrong one is refused, and signing out only forgets it", async () => {
  const page = await world.open("#/events", { expected: REFUSED });
  const field = page.getByRole("textbox");
  await page.getByText("cat .evreg/token").waitFor();
  expect(await page.getByRole("alert").count()).toBe(0);
  for (const [wrong, answer] of [
    ["evreg_wrong", "unknown, expired or revoked"],
    ["no tökén", "no token has"],
  ] as const) {
    await field.fill(wrong);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText(answer).waitFor();
  }
  await field.fill(` ${world.token} `);
  await field.press("Enter");
  await pageShows(page).waitFor();
  expect(page.url()).toBe(`${world.server.url}/ui/#/events`);
  await page.reload();
  await pageShows(page).waitFor();
  expect(await page.context().cookies()).toEqual([]);
  expect(await page.evaluate(() => localStorage.getItem("evreg.token"))).toBeNull();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field.waitFor();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  expect((await world.evreg.whoami()).data.scopes).toEqual(["admin"]);
});

test("another tab is not signed in", async () => {
  await pageShows(await world.open("", { token: world.token })).waitFor();
  await (await world.open("", { expected: REFUSED })).getByRole("textbox").waitFor();
});
