import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { register } from "../support/records.ts";
import { subscribe } from "./filled.ts";
import { turnTo, useWorld } from "./harness.ts";

// What somebody has typed is there until it was sent or dropped, whatever becomes of the page meanwhile.

const SCHEMA = { type: "object", properties: { id: { type: "string" } } };
const world = useWorld({
  dev: false,
  async prepare(evreg) {
    await register(evreg, "order.created", SCHEMA);
    await subscribe(evreg, "welcome", { handler: "https://hooks.example.com/evreg" });
  },
});

const REFUSED = /status of 401/;
const stored = (page: Page): Promise<string> =>
  page.evaluate(() => JSON.stringify(Object.entries(sessionStorage)));
const field = (page: Page, label: string) =>
  page.locator("input, textarea").and(page.getByLabel(label, { exact: true }));
const cameBack = (page: Page) => page.getByText("is here again");

test("a form is as it was after a reload, after another entry of the menu, and after going back", async () => {
  const page = await world.open("#/subscriptions/new", { token: world.token });
  await page.getByLabel("Application").fill("billing");
  await page.getByLabel("Handler").fill("https://hooks.example.com/typed");
  await page.reload();
  await cameBack(page).waitFor();
  await expect.poll(() => page.getByLabel("Handler").inputValue()).toBe("https://hooks.example.com/typed");
  await page.getByRole("link", { name: "Events" }).click();
  await page.goBack();
  const application = () => page.getByLabel("Application").inputValue();
  await expect.poll(application).toBe("billing");
  await page.getByRole("link", { name: "Overview" }).click();
  await turnTo(page, "#/subscriptions/new");
  await expect.poll(application).toBe("billing");
  await page.getByRole("button", { name: "Start anew" }).click();
  await expect.poll(application).toBe("");
  await expect.poll(() => stored(page)).not.toContain("billing");
});

test("what was sent or cancelled does not come back", async () => {
  const page = await world.open("#/subscriptions/new", { token: world.token });
  await page.getByLabel("Application").fill("shop");
  await page.getByRole("link", { name: "Cancel" }).click();
  await turnTo(page, "#/subscriptions/new");
  expect(await page.getByLabel("Application").inputValue()).toBe("");
  await turnTo(page, "#/subscriptions/1/edit");
  await page.getByLabel("Rate").fill("7");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("mail/welcome is changed.").waitFor();
  await expect.poll(() => stored(page)).not.toContain("evreg.draft");
});

test("a change stays a change of what it was made to", async () => {
  const page = await world.open("#/subscriptions/1/edit", { token: world.token });
  await page.getByLabel("In flight").fill("3");
  await page.reload();
  await cameBack(page).waitFor();
  await world.evreg.subscriptions.update(1, { max_retries: 9 });
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("mail/welcome is changed.").waitFor();
  expect((await world.evreg.subscriptions.get(1)).data).toMatchObject({ max_in_flight: 3, max_retries: 9 });
});

test("every form keeps what is typed", async () => {
  const page = await world.open("#/", { token: world.token });
  const FORMS = [
    ["#/subscriptions/1/test", "Payload", '{"id":"typed"}'],
    ["#/subscriptions/1/replay", "Published from", "2026-01-31T10:00:05"],
    ["#/actions?create=one", "Action", "order.typed"],
    ["#/actions/order.created/check", "Schema to check", '{"type":"object","title":"typed"}'],
    ["#/actions/order.created/publish", "Payload", '{"id":"typed"}'],
    ["#/actions/order.created/settings", "Successor", "order.typed"],
    ["#/tokens/new", "Name", "typed"],
    ["#/api/publishEvent", "Body", '{"action":"typed"}'],
  ] as const;
  for (const [address, label, text] of FORMS) {
    await turnTo(page, address);
    // The sample would come between the selection of what is there and the typing over it.
    if (address.endsWith("/publish")) await expect.poll(() => field(page, label).inputValue()).not.toBe("");
    await field(page, label).fill(text);
  }
  await page.reload();
  for (const [address, label, text] of FORMS) {
    await turnTo(page, address);
    await expect.poll(() => field(page, label).inputValue(), { message: address }).toBe(text);
  }
});

test("secrets are kept nowhere", async () => {
  const page = await world.open("#/subscriptions/1/edit", { token: world.token });
  await page.getByRole("radio", { name: "A value of its own" }).check();
  await page.getByLabel("Its value").fill("s3cret-typed");
  await turnTo(page, "#/api/updateSubscription");
  await field(page, "Body").fill('{"bearer_token": "s3cret-typed"}');
  expect(await stored(page)).not.toContain("s3cret-typed");
  expect(await page.evaluate(() => JSON.stringify(Object.entries(localStorage)))).not.toContain(
    "s3cret-typed",
  );
});

test("after the end of a sign-in the page says why, and the form is as it was", async () => {
  const { data } = await world.evreg.tokens.create({ name: "short", scopes: ["admin"] });
  const page = await world.open("#/", { expected: REFUSED });
  await page.getByRole("textbox").fill(data.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1 }).getByText("needs a person").waitFor();
  await turnTo(page, "#/subscriptions/1/edit");
  await page.getByLabel("Timeout").fill("17s");
  await world.evreg.tokens.revoke(data.rowid);
  await page.getByText(/^Your sign-in ended at \d\d:\d\d:\d\d\. What you typed is kept/).waitFor();
  await page.reload();
  await page.getByText("Your sign-in ended at").waitFor();
  await page.getByRole("textbox").fill("evreg_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("unknown, expired or revoked").waitFor();
  await page.getByRole("textbox").fill(world.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await cameBack(page).waitFor();
  await expect.poll(() => page.getByLabel("Timeout").inputValue()).toBe("17s");
  expect(await stored(page)).not.toContain("evreg.ended");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to evreg" }).waitFor();
  expect(await page.getByText("Your sign-in ended").count()).toBe(0);
  expect(await stored(page)).toBe("[]");
});
