import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ReceivedRequest, type Receiver, startReceiver } from "../support/receiver.ts";
import { publish, register } from "../support/records.ts";
import { subscribe } from "./filled.ts";
import { axeViolations, useWorld } from "./harness.ts";

const HOSTILE = '<img src=x onerror="alert(1)"> \u202Egpj.exe';

const SCHEMA = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
const world = useWorld({ prepare: (evreg) => register(evreg, "order.created", SCHEMA) });
let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());

const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });

const subscription = async (name: string, more: object = {}): Promise<number> =>
  (await subscribe(world.evreg, name, { handler: receiver.url, ...more })).rowid;

test("by the keyboard alone a subscription is made, and its secret is shown once and stays out of the address", async () => {
  const page = await world.open("#/subscriptions/new");
  await page.getByLabel("Application").focus();
  await page.keyboard.type("mail");
  await page.keyboard.press("Tab");
  await page.keyboard.type("welcome");
  await page.keyboard.press("Tab");
  await page.keyboard.type("order.created");
  await page.getByLabel("Handler").focus();
  await page.keyboard.type(receiver.url);
  await page.getByLabel("Waits").focus();
  await page.keyboard.type("1s, 5m");
  await page.keyboard.press("Enter");
  await heading(page, "mail/welcome is created").waitFor();
  const secret = await page.locator(".cmd code").innerText();
  expect(secret).toMatch(/^whsec_/);
  expect(await axeViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.getByRole("link", { name: "Open it" }).click();
  await heading(page, /^mail\/welcome$/).waitFor();
  expect(page.url()).not.toContain(secret);
  expect(await page.content()).not.toContain(secret);
  const [made] = (await world.evreg.subscriptions.list({ application: "mail" })).data;
  expect(made).toMatchObject({ subscription: "welcome", retry_schedule: [1_000, 300_000], max_retries: 2 });
});

test("what is wrong stands beside its field, and what was typed is kept", async () => {
  const page = await world.open("#/subscriptions/new", { expected: /status of 4\d\d/ });
  await page.getByLabel("Application").fill("mail");
  await page.getByLabel("Filter").fill('{"type": "nothing"}');
  await page.getByLabel("Timeout").fill("soon");
  await page.getByRole("button", { name: "Create it" }).click();
  await page.getByText("must be a time such as").waitFor();
  await page.getByLabel("Timeout").fill("");
  await page.getByRole("button", { name: "Create it" }).click();
  await expect.poll(() => page.getByText("It must not be empty.").count()).toBe(3);
  expect(await page.getByLabel("Application").inputValue()).toBe("mail");
});

test("a filter is tried on the last events before anything depends on it", async () => {
  for (const id of [1, 2, 3]) await publish(world.evreg, "order.created", `{"id":${id}}`);
  const id = await subscription("filtered");
  const page = await world.open(`#/subscriptions/${id}/edit`);
  await page.getByLabel("Filter", { exact: true }).fill('{"properties": {"id": {"minimum": 2}}}');
  await page.getByRole("button", { name: "On the last 50 events" }).click();
  await page.getByText("2 of 3").waitFor();
  expect(await axeViolations(page)).toEqual([]);
});

const isTest = ({ headers }: ReceivedRequest): boolean => headers["x-evreg-test"] === "true";

test("a test shows what was sent and what came back, hostile answers as text", async () => {
  const id = await subscription("tested", { headers: { "X-Markup": "<b>bold</b>" } });
  // Deliveries of the events before may still come.
  receiver.answer = (request) => (isTest(request) ? { status: 422, body: `${HOSTILE} \u001B[31mred` } : {});
  const page = await world.open(`#/subscriptions/${id}/test`);
  // The last event's payload comes late, and would come between the selection of what is there and the typing over it.
  await page.getByText(/^That of event \d+, the last one\.$/).waitFor();
  await page.getByLabel("Payload").fill('{"id": 12345678901234567890}');
  await page.getByRole("button", { name: "Send it" }).click();
  await page.getByText("The handler answered 422").waitFor();
  expect(await page.getByLabel("The answer").innerText()).toContain('<img src=x onerror="alert(1)">');
  expect(await page.getByLabel("The request").innerText()).toContain("<b>bold</b>");
  expect(await page.locator("main img, main b:not([class])").count()).toBe(0);
  expect(receiver.requests.find(isTest)!.body.toString()).toContain("12345678901234567890");
  expect(await axeViolations(page)).toEqual([]);
});

test("a pause can be undone, and a delete needs the name", async () => {
  const id = await subscription("gone-soon");
  const page = await world.open(`#/subscriptions/${id}`);
  await page.getByRole("button", { name: "Pause", exact: true }).last().click();
  await page.getByText("A person has paused it").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("A person has paused it").waitFor({ state: "detached" });
  await expect.poll(async () => (await world.evreg.subscriptions.get(id)).data.active).toBe(true);

  await page.getByLabel("More", { exact: true }).last().click();
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByRole("button", { name: "Delete it" }).isDisabled()).toBe(true);
  await dialog.getByRole("textbox").fill("mail/gone-soon");
  await page.keyboard.press("Enter");
  await heading(page, "Subscriptions").waitFor();
  await expect(world.evreg.subscriptions.get(id)).rejects.toThrow();
});

test("the overview names what needs a person, with its number in the navigation, and its chart has words", async () => {
  const id = await subscription("refused", { max_retries: 0 });
  receiver.answer = () => ({ status: 410 });
  await publish(world.evreg, "order.created", '{"id":4}');
  const page = await world.open("#/");
  await heading(page, /needs? a person/).waitFor();
  const line = page.locator(".attention li", { hasText: "mail/refused" });
  await line.getByText("410").first().waitFor();
  expect(await page.locator("nav .alert").first().innerText()).toMatch(/^\d/);
  await page.getByRole("img", { name: /^Rates of the last 1 h\./ }).waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await line.getByRole("link", { name: "Review" }).click();
  await heading(page, "mail/refused").waitFor();
  expect(page.url()).toContain(`#/subscriptions/${id}`);
});
