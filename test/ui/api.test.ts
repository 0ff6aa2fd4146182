import { expect, test } from "vitest";
import { register } from "../support/records.ts";
import { pressInto, useWorld } from "./harness.ts";

const world = useWorld({ dev: false, prepare: (evreg) => register(evreg, "order.created") });
const open = (address: string, look = {}) => world.open(address, { token: world.token, ...look });

test("an operation is found by keys alone, tried, and shown for a shell without the token", async () => {
  const page = await open("#/api");
  await pressInto(page, "/", page.getByRole("textbox", { name: "Filter operations" }));
  await page.keyboard.type("get one action");
  await page.getByRole("link", { name: "Get one action" }).press("Enter");
  await page.getByRole("textbox", { name: "name", exact: true }).fill("order.created");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Answer", exact: true }).getByText('"shop"').waitFor();
  const text = await page.locator("main").innerText();
  expect(text).toContain(
    `curl -H "Authorization: Bearer $EVREG_TOKEN" ${world.server.url}/v1/actions/order.created`,
  );
  expect(text).not.toContain(world.token);
});

test("a body begins with an example, and a refusal is shown as the answer that it is", async () => {
  const page = await open("#/api/createAction", { expected: /status of 4/ });
  const body = page.getByRole("textbox", { name: "Body" });
  expect(JSON.parse(await body.inputValue())).toMatchObject({
    action: "user.created",
    schemata: { type: "object" },
  });
  await body.fill('{"action":"order.created","application":"shop","schemata":{}}');
  await page.getByRole("button", { name: "Send POST" }).click();
  await page.getByText("409", { exact: true }).first().waitFor();
});

test("what cannot be undone is sent once its number was typed, and a stream is only explained", async () => {
  const { rowid } = (await world.evreg.tokens.create({ name: "other", scopes: ["read"] })).data;
  const page = await open("#/api/revokeToken");
  await page.getByRole("textbox", { name: "id" }).fill(String(rowid));
  await page.getByRole("button", { name: "Send DELETE" }).click();
  const act = page.getByRole("dialog").getByRole("button", { name: "Send DELETE" });
  expect(await act.isDisabled()).toBe(true);
  await page.getByRole("dialog").getByRole("textbox").fill(String(rowid));
  await act.click();
  await page.getByRole("region", { name: "Answer", exact: true }).waitFor();
  expect((await world.evreg.tokens.list()).data.map(({ name }) => name)).not.toContain("other");
  await page.goto(`${world.server.url}/ui/#/api/stream`);
  await page.getByText("Not tried here").waitFor();
});
