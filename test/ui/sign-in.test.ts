import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { useWorld } from "./harness.ts";

const world = useWorld({ dev: false });

const REFUSED = /status of 401/;
const pageShows = (page: Page) => page.locator("nav").first();

async function codeFrom(): Promise<string> {
  const { code } = (await world.evreg.tokens.createCode()).data;
  return `#code=${code}`;
}

async function browserTokens(): Promise<number> {
  return (await world.evreg.tokens.list()).data.filter(({ name }) => name === "browser").length;
}

describe("by a code", () => {
  test("the page is signed in, and the code is out of the address and the history", async () => {
    const code = await codeFrom();
    const page = await world.open(code);
    await pageShows(page).waitFor();
    expect(page.url()).toBe(`${world.server.url}/ui/#/`);
    await page.goBack();
    expect(page.url()).not.toContain("code=");
    await page.goto(`${world.server.url}/ui/#/events`);
    await page.reload();
    await pageShows(page).waitFor();
    expect(await page.context().cookies()).toEqual([]);
    expect(await page.evaluate(() => localStorage.getItem("evreg.token"))).toBeNull();
  });

  test("a code works once, and ends the token that it gave when it comes again", async () => {
    const before = await browserTokens();
    const code = await codeFrom();
    await pageShows(await world.open(code, { expected: REFUSED })).waitFor();
    expect(await browserTokens()).toBe(before + 1);
    const second = await world.open(code, { expected: REFUSED });
    await second.getByRole("alert").getByText("used before").waitFor();
    expect(await browserTokens()).toBe(before);
  });

  test("what is no code of the server's is refused, and a token can be pasted", async () => {
    const page = await world.open(`#code=${"x".repeat(38)}`, { expected: REFUSED });
    await page.getByRole("alert").getByText("unknown").waitFor();
    expect(page.url()).not.toContain("code=");
  });

  test("a tab that is open already takes a code as well", async () => {
    const page = await world.open("", { expected: REFUSED });
    await page.getByRole("textbox").waitFor();
    await page.goto(`${world.server.url}/ui/${await codeFrom()}`);
    await pageShows(page).waitFor();
  });

  test("a tab that is signed in asks before a link makes it somebody else's", async () => {
    const before = await browserTokens();
    const page = await world.open(await codeFrom());
    await pageShows(page).waitFor();
    const token = (): Promise<string | null> => page.evaluate(() => sessionStorage.getItem("evreg.token"));
    const own = await token();
    const dialog = page.getByRole("dialog", { name: "Sign in anew?" });
    await page.goto(`${world.server.url}/ui/${await codeFrom()}`);
    await dialog.getByText("You are browser").waitFor();
    expect(page.url()).not.toContain("code=");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.reload();
    await pageShows(page).waitFor();
    expect([await token(), await browserTokens()]).toEqual([own, before + 1]);
    await page.goto(`${world.server.url}/ui/${await codeFrom()}`);
    await dialog.getByRole("button", { name: "Sign in anew" }).click();
    await expect.poll(token).not.toBe(own);
    await pageShows(page).waitFor();
    await expect.poll(browserTokens).toBe(before + 1);
  });

  test("signing out ends the token", async () => {
    const before = await browserTokens();
    const page = await world.open(await codeFrom(), { expected: REFUSED });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("textbox").waitFor();
    await expect.poll(browserTokens).toBe(before);
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });
});

describe("by a token", () => {
  test("one that is pasted signs in, and signing out only forgets it", async () => {
    const page = await world.open("", { expected: REFUSED });
    const field = page.getByRole("textbox");
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
    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor();
    expect((await world.evreg.whoami()).data.scopes).toEqual(["admin"]);
  });

  test("another tab is not signed in", async () => {
    await pageShows(await world.open("", { token: world.token })).waitFor();
    await (await world.open("", { expected: REFUSED })).getByRole("textbox").waitFor();
  });
});
