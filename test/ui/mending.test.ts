import { afterAll, beforeAll, expect, test } from "vitest";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { publish, register } from "../support/records.ts";
import { failed, subscribe } from "./filled.ts";
import { useWorld } from "./harness.ts";

// From a handler that fails until its retries are used up to the moment where all has arrived, by the page alone.

const EVENTS = 3;
const world = useWorld({ prepare: (evreg) => register(evreg, "order.created") });
let broken: Receiver;
let mended: Receiver;
beforeAll(async () => {
  broken = await startReceiver();
  broken.answer = () => ({ status: 500 });
  mended = await startReceiver();
});
afterAll(() => Promise.all([broken.close(), mended.close()]));

/** A failure in the second of the publication could not be told from it. */
const again = { application: "billing", max_retries: 1, retry_schedule: [1_000] };

test("what has failed for good is sent again once its handler is mended, and all is well", async () => {
  await subscribe(world.evreg, "invoices", { ...again, handler: broken.url });
  for (let id = 1; id <= EVENTS; id += 1) await publish(world.evreg, "order.created", `{"id":${id}}`);
  await failed(world.evreg, EVENTS);

  const page = await world.open("#/");
  await page.getByRole("heading", { level: 1, name: "1 thing needs a person" }).waitFor();
  await page.getByText("3 deliveries have failed for good").waitFor();
  await page
    .getByRole("region", { name: "What needs a person" })
    .getByRole("link", { name: "billing/invoices" })
    .click();

  await page.getByRole("link", { name: "Edit" }).first().click();
  await page.getByLabel("Handler").fill(mended.url);
  await page.getByRole("button", { name: "Save" }).click();

  await page.getByRole("link", { name: "Send them again…" }).click();
  await page.getByRole("button", { name: "Send 3" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send 3" }).click();
  await page.getByText("Replay 1 has begun.").waitFor();
  const ids = (await mended.received(EVENTS)).map(({ body }) => JSON.parse(body.toString()).payload.id);
  expect(new Set(ids)).toEqual(new Set([1, 2, 3]));

  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("heading", { level: 1, name: "Nothing needs a person" }).waitFor();
});

test("the overview's own link to a replay counts what has failed", async () => {
  const { rowid } = await subscribe(world.evreg, "receipts", { ...again, handler: broken.url });
  await publish(world.evreg);
  await failed(world.evreg, 1);
  // An application that changes its handler has mended what fails now, not what failed.
  await world.evreg.subscriptions.update(rowid, { handler: mended.url });
  const page = await world.open("#/");
  await page.getByRole("link", { name: "Replay…" }).click();
  await page.getByRole("button", { name: "Send 1" }).waitFor();
});
