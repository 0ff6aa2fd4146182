import { expect, test } from "vitest";
import { subscribe } from "./filled.ts";
import { useWorld } from "./harness.ts";

// Nobody is alone: others change what somebody has open, and answers get lost on their way.

const SCHEMA = { type: "object", properties: { id: { type: "string" } } };
const withMember = (name: string) => ({
  ...SCHEMA,
  properties: { ...SCHEMA.properties, [name]: { type: "string" } },
});
const world = useWorld({
  async prepare(evreg) {
    for (const action of ["order.created", "order.paid", "order.sent"])
      await evreg.actions.create({ action, application: "shop", schemata: SCHEMA, compatibility: "none" });
    await subscribe(evreg, "welcome");
  },
});

test("a form of settings sends only what was changed in it", async () => {
  const page = await world.open("#/subscriptions/1/edit");
  await page.getByLabel("Rate").fill("7");
  const readAnew = page.waitForResponse(async (response) => (await response.text()).includes("/after"));
  await world.evreg.subscriptions.update(1, { handler: "http://127.0.0.1:9/after", max_retries: 9 });
  await readAnew;
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("mail/welcome is changed.").waitFor();
  expect((await world.evreg.subscriptions.get(1)).data).toMatchObject({
    rate_limit: 7,
    handler: "http://127.0.0.1:9/after",
    max_retries: 9,
  });
});

test("who changes a field that another has changed meanwhile is told, and may replace that", async () => {
  const page = await world.open("#/subscriptions/1/edit");
  await page.getByLabel("In flight").fill("3");
  await world.evreg.subscriptions.update(1, { max_in_flight: 5 });
  const save = page.getByRole("button", { name: "Save" });
  await save.click();
  await page.getByText("Somebody else has set it to 5 meanwhile.").waitFor();
  expect((await world.evreg.subscriptions.get(1)).data.max_in_flight).toBe(5);
  await save.click();
  await page.getByText("mail/welcome is changed.").waitFor();
  expect((await world.evreg.subscriptions.get(1)).data.max_in_flight).toBe(3);
});

test("who changes an action's compatibility after another is told, and may replace that", async () => {
  const page = await world.open("#/actions/order.created/settings");
  await page.getByRole("radio", { name: /consumer/ }).check();
  await world.evreg.actions.update("order.created", { compatibility: "full" });
  const change = page.getByRole("button", { name: "Change it" });
  await change.click();
  await page.getByText("Somebody else has set it to full meanwhile.").waitFor();
  expect((await world.evreg.actions.get("order.created")).data.compatibility).toBe("full");
  await change.click();
  await page.getByText("Compatibility is changed.").waitFor();
  expect((await world.evreg.actions.get("order.created")).data.compatibility).toBe("consumer");
});

test("what somebody else has set of an action stays where it was not touched", async () => {
  const page = await world.open("#/actions/order.paid/settings");
  await page.getByRole("radio", { name: /consumer/ }).check();
  await world.evreg.actions.update("order.paid", { deprecated: true });
  await page.getByRole("button", { name: "Change it" }).click();
  await page.getByText("Compatibility is changed.").waitFor();
  expect((await world.evreg.actions.get("order.paid")).data).toMatchObject({
    compatibility: "consumer",
    deprecated: true,
  });
});

test("a schema is not applied over one that it was not compared with", async () => {
  const page = await world.open("#/actions/order.sent/check", { expected: /status of 4\d\d/ });
  const editor = page.getByRole("textbox", { name: "Schema to check" });
  await editor.fill(JSON.stringify(withMember("mine")));
  const apply = page.getByRole("button", { name: "Apply it" });
  await apply.waitFor();
  await world.evreg.actions.update("order.sent", { schemata: withMember("theirs") });
  await apply.click();
  await page.getByText("Another schema was applied meanwhile.").waitFor();
  const { data } = await world.evreg.actions.get("order.sent");
  expect(data).toMatchObject({ revision: 2, schemata: withMember("theirs") });
  expect(await editor.inputValue()).toContain("mine");
});

test("an event is stored once where its answer was lost and it is published again", async () => {
  const page = await world.open("#/actions/order.created/publish", { expected: /ERR_FAILED/ });
  const publish = page.getByRole("button", { name: "Publish it" });
  const payload = page.getByRole("textbox", { name: "Payload" });
  // The sample would come between the selection of what is there and the typing over it.
  await expect.poll(() => payload.inputValue()).not.toBe("");
  await payload.fill('{"id":"once"}');
  await page.route("**/v1/events", async (route) => {
    // The server has it, and nobody hears of that.
    await route.fetch();
    await route.abort();
  });
  await publish.click();
  await page.getByText("No answer came.").waitFor();
  await page.unroute("**/v1/events");
  await publish.click();
  await page.getByText("Published as event 1.").waitFor();
  await publish.click();
  await page.getByText("Published as event 2.").waitFor();
  expect((await world.evreg.events.list()).meta.total).toBe(2);
});
