import { expect, test } from "vitest";
import { axeViolations, turnTo, useWorld } from "./harness.ts";

const world = useWorld();

test("a screen that fails says so, others go on, and it comes back once the page is loaded again", async () => {
  const page = await world.open("#/events", { expected: /null/ });
  let isBroken = true;
  await page.route("**/v1/tokens*", (route) =>
    isBroken ? route.fulfill({ json: { data: [null] } }) : route.continue(),
  );
  await turnTo(page, "#/tokens");
  const again = page.getByRole("button", { name: "Load the page again" });
  await again.waitFor();
  expect(await axeViolations(page)).toEqual([]);
  await turnTo(page, "#/audit");
  await page.getByRole("heading", { name: "Audit" }).waitFor();
  await turnTo(page, "#/tokens");
  await again.waitFor();
  isBroken = false;
  await again.click();
  await page.getByRole("heading", { name: "Tokens" }).waitFor();
});
