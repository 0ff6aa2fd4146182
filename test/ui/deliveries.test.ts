import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { Evreg } from "../../src/evreg.ts";
import { until } from "../support/until.ts";
import { publish, register } from "../support/records.ts";
import { failed, subscribe } from "./filled.ts";
import { axeViolations, useWorld } from "./harness.ts";

// Deliveries, where an event went, and what an operator looks at.

const HOSTILE =
  '{"a":"<script>alert(1)</script>","b":"\\u202e right to left","c":"\\u001b[31mred","id":12345678901234567890}';
const LARGE_BYTES = 70_000;

/** An event whose only delivery fails for good at once: nobody listens there. */
async function prepare(evreg: Evreg): Promise<void> {
  await register(evreg, "order.created");
  await subscribe(evreg, "invoices", { application: "billing", max_retries: 1 });
  await publish(evreg, "order.created", HOSTILE);
  await publish(evreg, "order.created", JSON.stringify({ text: "x".repeat(LARGE_BYTES) }));
  await failed(evreg, 2);
}

const world = useWorld({ prepare });

async function expectNoViolations(page: Page): Promise<void> {
  expect(await axeViolations(page)).toEqual([]);
}

test("a failed delivery says what was tried, what was sent without its secret, and is sent again", async () => {
  const page = await world.open("#/deliveries?status=failed");
  await page.getByRole("link", { name: "billing/invoices" }).last().click();
  const detail = page.getByRole("article", { name: "Delivery 1" });
  await detail.getByText(/^Attempt 2 /).waitFor();
  await expect.poll(() => detail.getByText("connection_refused").count()).toBe(3);
  // On a busy machine part of the wait is not by its schedule.
  const wait = detail.getByText(/^(sent again at once|waited .+ by its schedule)/);
  await expect.poll(() => wait.count()).toBe(1);
  const request = page.getByRole("region", { name: "Request" });
  const headers = /X-Evreg-Delivery\s+1_2\s+X-Evreg-Signature\s+sha256=…/;
  await expect.poll(() => request.innerText()).toMatch(headers);
  await request.getByRole("button", { name: "Copy" }).click();
  let curl = "";
  const copied = async () => (curl = await page.evaluate(() => navigator.clipboard.readText()));
  await expect.poll(copied).toContain(`"payload":${HOSTILE},"timestamp"`);
  expect(curl).not.toMatch(/whsec_|Bearer|[Ss]ignature/);
  await expectNoViolations(page);

  const { attempt } = (await world.evreg.deliveries.get(1)).data;
  await detail.getByRole("button", { name: "Send again" }).click();
  await until("another attempt", async () => (await world.evreg.deliveries.get(1)).data.attempt > attempt);
  await detail.getByText(/^Attempt 3 /).waitFor();
});

test("picked deliveries are sent together, all that failed become a replay", async () => {
  await failed(world.evreg, 2);
  const page = await world.open("#/deliveries?status=failed");
  await page.getByRole("checkbox", { name: "Pick delivery 1" }).check();
  await page.getByText("1 delivery picked").waitFor();
  await page.getByRole("button", { name: "Pick none" }).click();
  await page.goto(`${world.server.url}/ui/#/deliveries?status=failed&subscription=1`);
  await page.getByRole("link", { name: "Send all again…" }).click();
  await page.getByRole("button", { name: "Send 2" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send 2" }).click();
  await page.getByRole("table", { name: "Replays" }).getByText("2 of 2").waitFor();
  await expectNoViolations(page);
});

test("an event opens where it failed, and shows hostile text as text, and each digit", async () => {
  const page = await world.open("#/events/1");
  await page.getByText(/^Attempt 1 /).waitFor();
  await page.getByRole("button", { name: "Exact" }).click();
  await expect.poll(() => page.getByRole("list", { name: "JSON" }).innerText()).toContain(HOSTILE);
  await page.getByRole("link", { name: /billing\/invoices/ }).click();
  await page.getByText(/^Attempt 1 /).waitFor({ state: "detached" });
  expect(page.url()).toContain("delivery=none");
  await expectNoViolations(page);
});

test("a large payload is not shown unasked", async () => {
  const page = await world.open("#/events/2");
  const show = page.getByRole("button", { name: "Show it" });
  await show.waitFor();
  expect(await page.getByText("xxxx").count()).toBe(0);
  await show.click();
  await page.getByRole("list", { name: "JSON" }).getByText("xxxx").waitFor();
});

test("events are searched by members of their payloads, and a wrong search says so", async () => {
  const page = await world.open("#/events");
  const field = page.getByRole("combobox", { name: "Filter events" });
  await field.fill("where id=12345678901234567890");
  await field.press("Enter");
  await page.getByText("1 shown").waitFor();
  await page.goto(`${world.server.url}/ui/#/events?where=nothing`);
  await page.getByText("where takes members such as country=FR").waitFor();
});

test("a token is made with the scopes picked, shown once, and revoked by its name", async () => {
  const page = await world.open("#/tokens/new");
  await page.getByLabel("Name").fill("grafana");
  await page.getByRole("checkbox", { name: /^publish/ }).uncheck();
  await page.getByRole("checkbox", { name: /^read/ }).check();
  await expectNoViolations(page);
  await page.getByRole("button", { name: "Create it" }).click();
  await page.getByText(/^evreg_\w{36}$/).waitFor();
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.getByRole("link", { name: "All tokens" }).click();
  expect((await world.evreg.tokens.list()).data).toMatchObject([{ name: "grafana", scopes: ["read"] }]);
  await page.getByRole("button", { name: "Revoke grafana" }).click();
  const revoke = page.getByRole("button", { name: "Revoke it" });
  expect(await revoke.isDisabled()).toBe(true);
  await page.getByRole("dialog").getByRole("textbox").fill("grafana");
  await revoke.click();
  await page.getByText("No token yet").waitFor();
  await page.goto(`${world.server.url}/ui/#/audit`);
  await page.getByRole("cell", { name: "Token revoked" }).waitFor();
});

test("the doctor's problems come first, with what to do", async () => {
  const page = await world.open("#/doctor");
  await page.getByRole("heading", { name: "All well" }).waitFor();
  const [first] = await page.getByRole("heading", { level: 2 }).allInnerTexts();
  expect(first).not.toBe("All well");
  await page.getByRole("button", { name: "Check again" }).click();
  await page.getByRole("button", { name: "Check again" }).waitFor();
});

test("a subscription that none is called is said to be none", async () => {
  const page = await world.open("#/deliveries?subscription=no/such");
  await page.getByText("None is called no/such.").waitFor();
});

test("each cause of the backlog leads to its own list", async () => {
  const { evreg } = world;
  await register(evreg, "order.held");
  await subscribe(evreg, "slow", { action: "order.held", retry_schedule: [3_600_000] });
  await publish(evreg, "order.held");
  await until(
    "it to wait",
    async () => (await evreg.deliveries.list({ cause: "waiting" })).data.length === 1,
  );
  const page = await world.open("#/");
  const causes = page.getByRole("region", { name: "Unfinished, by cause" });
  await causes.getByRole("link", { name: "Waiting" }).click();
  await page.getByRole("link", { name: "mail/slow" }).waitFor();
  expect(page.url()).toContain("cause=waiting");
  await page.goBack();
  await causes.getByRole("link", { name: "Behind a blocked one" }).click();
  await page.getByText("No delivery matches").waitFor();
  expect(page.url()).toContain("cause=blocked");
});
