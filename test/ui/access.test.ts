import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { publish, register } from "../support/records.ts";
import { subscribe } from "./filled.ts";
import { settled, turnTo, useWorld, visit } from "./harness.ts";

// Keyboards, fingers, scripts from right to left, and the system's own colours.

const [APPLICATION, NAME] = ["שלום", "עולם"];
const world = useWorld({
  async prepare(evreg) {
    await register(evreg, "order.created");
    await subscribe(evreg, NAME, { application: APPLICATION, active: false });
    await publish(evreg);
  },
});

const focused = (page: Page): Promise<string> =>
  page.evaluate(
    () => document.querySelector(`label[for="${document.activeElement?.id}"]`)?.textContent ?? "",
  );

test("the first wrong field has the focus once a form was refused", async () => {
  const page = await world.open("#/subscriptions/new", { expected: /status of 4\d\d/ });
  await page.getByLabel("Application").fill("mail");
  await page.getByLabel("Name").fill("welcome");
  await page.getByLabel("Action").fill("order.created");
  await page.getByLabel("Handler").fill("http://127.0.0.1:9/");
  await page.getByLabel("Timeout").fill("soon");
  await page.getByRole("button", { name: "Create it" }).click();
  await expect.poll(() => focused(page)).toBe("Timeout");
  const isSeen = (): Promise<boolean> =>
    page.getByText("must be a time such as").evaluate((words) => {
      const { x, y, width, height } = words.getBoundingClientRect();
      return document.elementFromPoint(x + width / 2, y + height / 2) === words;
    });
  await expect.poll(isSeen).toBe(true);
  await page.getByLabel("Timeout").fill("");
  await page.getByLabel("Name").fill("");
  await page.getByRole("button", { name: "Create it" }).click();
  await expect.poll(() => focused(page)).toBe("Name");
  await turnTo(page, "#/actions?create=one");
  await page.getByRole("button", { name: "Create it" }).click();
  await expect.poll(() => focused(page)).toBe("Action");
  await turnTo(page, "#/tokens/new");
  await page.getByRole("button", { name: "Create it" }).click();
  await expect.poll(() => focused(page)).toBe("Name");
  await page.getByLabel("Only for").focus();
  await page.getByLabel("Name").fill("x".repeat(300));
  await page.getByRole("button", { name: "Create it" }).click();
  await expect.poll(() => focused(page)).toBe("Name");
});

test("the parts of a name keep their places, whatever script they are in", async () => {
  const page = await world.open("#/subscriptions");
  for (const address of ["#/subscriptions", "#/subscriptions/1", "#/subscriptions/1/edit", "#/overview"]) {
    await visit(page, address);
    const place = page.locator("main :is(h1, a)").filter({ hasText: NAME }).first();
    const [left, right] = await Promise.all(
      [APPLICATION, NAME].map(
        async (part) => (await place.getByText(part, { exact: true }).boundingBox())!.x,
      ),
    );
    expect(left, address).toBeLessThan(right!);
  }
});

test("the system's own colours show what is picked, and what cannot be pressed", async () => {
  const page = await world.open("#/deliveries");
  await page.emulateMedia({ forcedColors: "active" });
  const outline = (selector: string): Promise<string> =>
    page
      .locator(selector)
      .first()
      .evaluate((element) => getComputedStyle(element).outlineStyle);
  expect(await outline(".rail a[aria-current]")).toBe("solid");
  expect(await outline(".rail a:not([aria-current])")).toBe("none");
  await turnTo(page, "#/");
  expect(await outline(".seg [aria-pressed=true]")).toBe("solid");
  expect(await outline(".seg [aria-pressed=false]")).toBe("none");
  await turnTo(page, "#/events/1");
  expect(await outline("tr[aria-selected=true]")).toBe("solid");
});

test("a box to tick takes a finger", async () => {
  await world.evreg.subscriptions.update(1, { active: true });
  await publish(world.evreg);
  const page = await world.open("#/deliveries");
  await settled(page);
  const box = page.getByRole("checkbox", { name: /^Pick delivery/ }).first();
  const { x, y, width, height } = (await box.boundingBox())!;
  for (const [right, down] of [
    [-11, 0],
    [11, 0],
    [0, -11],
    [0, 11],
  ] as const) {
    const before = await box.isChecked();
    await page.mouse.click(x + width / 2 + right, y + height / 2 + down);
    await expect.poll(() => box.isChecked()).toBe(!before);
  }
  expect(page.url()).toMatch(/#\/deliveries$/);
});
