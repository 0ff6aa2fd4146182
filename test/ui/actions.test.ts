import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { publish, register } from "../support/records.ts";
import { subscribe } from "./filled.ts";
import { axeViolations, pressInto, settled, useWorld } from "./harness.ts";

const HOSTILE = '<img src=x onerror="alert(1)">\u202e\u001b[31m';
const LINE = {
  type: "object",
  required: ["sku"],
  properties: { sku: { type: "string" }, price: { type: "number" } },
};
const ORDER = {
  type: "object",
  title: HOSTILE,
  required: ["id"],
  properties: {
    id: { type: "string" },
    customer: {
      type: "object",
      properties: { id: { type: "integer" }, country: { enum: ["DE", "FR", "IT"] } },
    },
    note: { type: "string", maxLength: 140 },
    lines: { type: "array", items: { $ref: "#/definitions/line" } },
    most: { type: "integer", maximum: 900719925474099 },
  },
  definitions: { line: LINE },
};
const LONG_NAME = `a.${"very-long-name.".repeat(8)}v1`;

const world = useWorld({
  async prepare(evreg) {
    await register(evreg, "order.created", ORDER);
    const longer = {
      ...ORDER,
      properties: { ...ORDER.properties, note: { type: "string", maxLength: 200 } },
    };
    await evreg.actions.update("order.created", { schemata: longer }, { compatibility: "none" });
    for (const country of ["DE", "IT"]) {
      await publish(evreg, "order.created", JSON.stringify({ id: "1", customer: { country } }));
    }
    await register(evreg, LONG_NAME);
    const filter = { properties: { customer: { properties: { country: { enum: ["DE"] } } } } };
    await subscribe(evreg, "invoices", { action: "order.*", filter });
    await subscribe(evreg, "stock", { ordered: { key: "/customer/id" } });
  },
});

const editor = (page: Page) => page.getByRole("textbox", { name: "Schema to check" });

/** Changes the schema that is written, as somebody who types would. */
async function write(page: Page, change: (schema: typeof ORDER) => object): Promise<void> {
  const schema = JSON.parse(await editor(page).inputValue()) as typeof ORDER;
  await editor(page).fill(JSON.stringify(change(schema), null, 2));
}

const narrower = (schema: typeof ORDER): object => ({
  ...schema,
  required: ["id", "total"],
  properties: {
    ...schema.properties,
    customer: { ...schema.properties.customer, properties: { country: { enum: ["DE", "FR"] } } },
  },
});

test("the list leads to an action by keys alone, and back", async () => {
  const page = await world.open("#/actions?name=order");
  const link = page.getByRole("link", { name: "order.created" });
  await pressInto(page, "j", link);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "order.created" }).waitFor();
  await page.goBack();
  await link.waitFor();
  await pressInto(page, "/", page.getByRole("combobox", { name: "Filter actions" }));
  await page.keyboard.type("state retired");
  await page.keyboard.press("Enter");
  await page.getByText("No action matches").waitFor();
});

test("the list is sorted by its heads", async () => {
  const page = await world.open("#/actions");
  await page.getByRole("button", { name: "Published 24 h" }).click();
  await page
    .getByRole("columnheader", { name: "Published 24 h", exact: false })
    .and(page.locator("[aria-sort=descending]"))
    .waitFor();
  await page.getByRole("button", { name: "Action", exact: true }).click();
  await page.locator("[aria-sort=ascending]").waitFor();
});

test("a schema is shown as text, with who depends on which of its fields", async () => {
  const page = await world.open("#/actions/order.created");
  await page.getByLabel("JSON").getByText("onerror").waitFor();
  expect(await page.locator("main img").count()).toBe(0);
  const subscribers = page.getByRole("region", { name: "Subscribers" });
  const text = () => subscribers.innerText();
  await expect.poll(text).toMatch(/mail\/invoices[^]*order\.\*[^]*customer\.country/);
  await expect.poll(text).toMatch(/mail\/stock[^]*customer\.id/);
});

test("a breaking schema is refused as it is typed: where, shown by what, and which events", async () => {
  const page = await world.open("#/actions/order.created/check");
  await write(page, narrower);
  const verdict = page.getByText("Not compatible");
  await verdict.waitFor();
  const main = page.locator("main");
  await main.getByText(/Of the last 2 events 2 would not conform/).waitFor();
  const breaks = page.getByRole("region", { name: "Breaks" });
  const told = () => breaks.innerText();
  await expect.poll(told).toMatch(/mail\/invoices filters by customer\.country/);
  await expect.poll(told).toMatch(/has become required[^]*← no total[^]*Instead/);
  expect(await breaks.getByText("/properties/customer/properties/country/enum").count()).toBe(1);
  expect(await axeViolations(page)).toEqual([]);
  // A pin leads to its break, and that to its line.
  await page.getByRole("button", { name: "Break 1", exact: true }).click();
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("break-1");
  // What was typed is kept elsewhere, and goes into a new version.
  await page.getByRole("link", { name: "Create as order.created.v2" }).click();
  await page.getByRole("button", { name: "Create it" }).click();
  await page.getByRole("heading", { level: 1, name: "order.created.v2" }).waitFor();
  expect((await world.evreg.actions.get("order.created.v2")).data.schemata["required"]).toEqual([
    "id",
    "total",
  ]);
});

test("a schema that breaks others is applied by whoever may and types the name", async () => {
  const page = await world.open("#/actions/order.created.v2/check");
  await editor(page).waitFor();
  await write(page, (schema) => ({ ...schema, required: ["id", "total", "note"] }));
  await page.getByRole("button", { name: "Apply it all the same" }).click();
  const act = page.getByRole("dialog").getByRole("button", { name: "Apply it" });
  expect(await act.isDisabled()).toBe(true);
  await page.getByRole("dialog").getByRole("textbox").fill("order.created.v2");
  await act.click();
  await page.getByText("Revision 2 breaks what revision 1 promised").waitFor();
  expect(page.url()).toMatch(/revisions\?from=1&to=2/);
});

test("a compatible schema is applied as it was written, with its large numbers", async () => {
  const page = await world.open(`#/actions/${LONG_NAME}/check`);
  await editor(page).fill(
    '{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567890}}}',
  );
  await page.getByRole("button", { name: "Apply it" }).waitFor();
  const sent = page.waitForRequest((request) => request.method() === "PUT");
  await page.getByRole("button", { name: "Apply it" }).click();
  expect((await sent).postData()).toContain('"maximum":12345678901234567890');
  await page.getByRole("heading", { name: "What changes" }).waitFor();
});

test("text that is no JSON is said to be none, and asks the server nothing", async () => {
  const page = await world.open("#/actions/order.created/check", { expected: /status of 422/ });
  await editor(page).fill('{"type": ');
  await page.getByText("This is not JSON yet").waitFor();
  await editor(page).fill('{"type":"nothing"}');
  await page.getByText("evreg does not take this schema").waitFor();
});

test("an event is published from a sample, and a wrong one is refused with its places", async () => {
  const page = await world.open("#/actions/order.created/publish", { expected: /status of 422/ });
  const payload = page.getByRole("textbox", { name: "Payload" });
  await expect.poll(() => payload.inputValue(), { timeout: 10_000 }).toContain('"id"');
  await page.getByRole("button", { name: "Publish it" }).click();
  await page.getByText("Published as event").waitFor();
  await payload.fill('{"id": 7, "lines": [{"price": 1}]}');
  await page.getByRole("button", { name: "Publish it" }).click();
  await page.getByText("Not published").waitFor();
  expect(await page.locator("main").innerText()).toMatch(/lines\[0\]\.sku\s+is required/);
});

test("what was retired or deprecated can be taken back", async () => {
  const page = await world.open(`#/actions/${LONG_NAME}/settings`);
  await page.getByRole("textbox", { name: "Successor" }).fill("order.created");
  await page.getByRole("button", { name: "Deprecate" }).click();
  await page.getByText("Publish instead to").waitFor();
  expect((await world.evreg.actions.get(LONG_NAME)).data).toMatchObject({
    deprecated: true,
    successor: "order.created",
  });
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("In force", { exact: true }).first().waitFor();
  await expect.poll(async () => (await world.evreg.actions.get(LONG_NAME)).data.deprecated).toBe(false);
});

test("a server that cannot be reached is said so, and what was typed stays", async () => {
  const page = await world.open("#/actions/order.created/check", { expected: /Failed to load|ERR_/ });
  await settled(page);
  await page.route("**/v1/**", (route) => route.abort());
  await write(page, narrower);
  await page.getByText("Not checked").waitFor();
  expect(await editor(page).inputValue()).toContain('"total"');
});
