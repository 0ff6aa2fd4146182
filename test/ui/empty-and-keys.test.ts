import { expect, test } from "vitest";
import { words } from "../support/words.ts";
import { axeViolations, turnTo, useWorld, visit } from "./harness.ts";

// A server that nobody has used yet, and a person who uses no mouse.

const world = useWorld();

/** Each list: its key after `G`, its title, and what an empty one says, with the next step. */
const LISTS: readonly (readonly [key: string, title: string, says: string, next: RegExp])[] = [
  ["o", "Nothing needs a person", "No subscription yet", /evreg subscriptions create|Create a subscription/],
  ["e", "Events", "No event yet", /evreg publish/],
  ["d", "Deliveries", "No delivery yet", /evreg subscriptions create/],
  ["s", "Subscriptions", "No subscription yet", /Create a subscription/],
  ["a", "Actions", "evreg.", /Create an action/],
  ["r", "Replays", "No replay yet", /Deliveries that failed/],
  ["t", "Tokens", "No token yet", /Create a token/],
  ["u", "Audit", "Nothing was changed yet", /evreg audit/],
];

test(
  "each empty screen is reached by its keys, says the next step, and has no fault for axe",
  { timeout: 300_000 },
  async () => {
    const page = await world.open("#/api");
    await visit(page, "#/api");
    const faults: string[] = [];
    for (const [key, title, says, next] of LISTS) {
      const heading = page.getByRole("heading", { level: 1, name: title });
      // Both within a second, which a busy machine may miss.
      const go = async (): Promise<number> => {
        await page.keyboard.press("g");
        await page.keyboard.press(key);
        return heading.count();
      };
      await expect.poll(go, { timeout: 30_000 }).toBeGreaterThan(0);
      const main = page.locator("main");
      await main.getByText(says).first().waitFor();
      await expect.poll(() => main.innerText()).toMatch(next);
      faults.push(...(await axeViolations(page)).map((fault) => `${title}: ${fault}`));
    }
    expect(faults).toEqual([]);
  },
);

const USABLE =
  "main :is(a[href], button:enabled, input:enabled:not([type=radio]), select, textarea, summary)";

test(
  "all that can be used on a screen is reached by Tab, and shows that it is",
  { timeout: 300_000 },
  async () => {
    const page = await world.open("#/");
    const wrong: string[] = [];
    for (const address of ["#/", "#/events", "#/subscriptions/new", "#/actions?create=one", "#/tokens/new"]) {
      await visit(page, address);
      await page.locator("#main").focus();
      for (;;) {
        await page.keyboard.press("Tab");
        const fault = await page.evaluate(() => {
          const now = document.activeElement;
          if (now === null || now.closest("main") === null) return "left";
          now.setAttribute("data-reached", "");
          const isSeen = [now, now.parentElement!].some((one) => {
            const { outlineStyle, boxShadow } = getComputedStyle(one);
            return outlineStyle !== "none" || boxShadow !== "none";
          });
          return isSeen ? undefined : `no focus is shown at ${now.outerHTML.slice(0, 120)}`;
        });
        if (fault === "left") break;
        if (fault !== undefined) wrong.push(`${address}: ${fault}`);
      }
      const missed = await page
        .locator(USABLE)
        .evaluateAll((all) =>
          all
            .filter((one) => one.checkVisibility() && !one.hasAttribute("data-reached"))
            .map((one) => one.outerHTML.slice(0, 120)),
        );
      wrong.push(...missed.map((one) => `${address}: not reached by Tab: ${one}`));
    }
    expect(wrong).toEqual([]);
  },
);

test("what is not there is said in words on each screen", { timeout: 300_000 }, async () => {
  const page = await world.open("#/", { expected: /status of 404/ });
  for (const address of words("#/events/7 #/deliveries/7 #/subscriptions/7 #/actions/none #/replays/7")) {
    await turnTo(page, address);
    await page.locator("main").getByText("Not found").first().waitFor();
  }
  await turnTo(page, "#/api/none");
  await page.getByText("There is no such operation").waitFor();
  await turnTo(page, "#/none");
  await page.getByText("There is no such screen").waitFor();
});
