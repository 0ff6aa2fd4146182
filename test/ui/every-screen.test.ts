import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Receiver } from "../support/receiver.ts";
import { ADDRESSES, fill, hostileReceiver } from "./filled.ts";
import { axeViolations, type Look, overflowOf, useWorld, visit } from "./harness.ts";

// What holds for all that the page can show, each part filled with long and hostile names.

let receiver: Receiver;
beforeAll(async () => {
  receiver = await hostileReceiver();
});
afterAll(() => receiver.close());
const world = useWorld({ prepare: (evreg) => fill(evreg, receiver.url) });

const LOOKS: readonly { readonly look: Look & { readonly scheme: string }; readonly widths: number[] }[] = [
  { look: { scheme: "light", width: 1280 }, widths: [3840, 1280, 1099, 768] },
  { look: { scheme: "dark", width: 390, touch: true }, widths: [360, 390] },
];
const HEIGHT = 900;
/** One page looks at all of them, which takes a slow and busy machine minutes. */
const WITHIN_MS = 600_000;

describe.each(LOOKS)("$look.scheme, $look.width px", ({ look, widths }) => {
  const check = async (page: Page): Promise<readonly string[]> => {
    const faults = [...(await axeViolations(page))];
    const markup = "main :is(script, img, b.hostile), nav :is(script, img), header :is(script, img)";
    if ((await page.locator(markup).count()) > 0) faults.push("text was taken for markup");
    for (const width of widths) {
      await page.setViewportSize({ width, height: HEIGHT });
      const overflow = await overflowOf(page);
      if (overflow > 0) faults.push(`${overflow} px wider than a window of ${width}`);
    }
    return faults;
  };

  test(
    "no screen has a fault for axe, is wider than the window, or takes text for markup",
    { timeout: WITHIN_MS },
    async () => {
      const page = await world.open("", { ...look, expected: /status of 404/ });
      const faults: string[] = [];
      for (const address of ADDRESSES) {
        await visit(page, address);
        faults.push(...(await check(page)).map((fault) => `${address}: ${fault}`));
      }
      expect(faults).toEqual([]);
    },
  );
});
