import { describe, expect, test } from "vitest";
import { axeViolations, type Look, screensOf, useWorld } from "./harness.ts";

// What holds for all screens, which the navigation names.

const world = useWorld({
  async prepare(evreg) {
    const schemata = { type: "object", properties: { total: { type: "number" } } };
    await evreg.actions.create({ action: "order.created", application: "shop", schemata });
  },
});

const LOOKS: readonly Look[] = [
  { scheme: "light", width: 1280 },
  { scheme: "dark", width: 1280 },
  { scheme: "light", width: 390, touch: true },
];

test("a server for development asks for nothing, and the page leads to its screens", async () => {
  const page = await world.open("");
  const screens = await screensOf(page);
  expect(screens).toContain("#/events");
  expect(await page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
});

describe.each(LOOKS)("$scheme, $width px", (look) => {
  test("axe finds nothing wrong on any screen, and none is wider than the window", async () => {
    const page = await world.open("", look);
    const wrong: string[] = [];
    for (const screen of await screensOf(page)) {
      await page.goto(`${world.server.url}/ui/${screen}`);
      await page.getByRole("heading", { level: 1 }).first().waitFor();
      const found = await axeViolations(page);
      wrong.push(...found.map((line) => `${screen}: ${line}`));
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overflow > 0) wrong.push(`${screen}: ${overflow} px too wide`);
    }
    expect(wrong).toEqual([]);
  });
});
