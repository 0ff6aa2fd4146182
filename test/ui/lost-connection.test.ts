import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Receiver } from "../support/receiver.ts";
import { type RunningProgram, startProgram } from "../support/program.ts";
import { fill, hostileReceiver } from "./filled.ts";
import { settled, turnTo, useWorld } from "./harness.ts";

// A server that is killed while the page is open, and one that comes back at the same address.

let receiver: Receiver;
let program: RunningProgram;
beforeAll(async () => {
  receiver = await hostileReceiver();
});
afterAll(() => receiver.close());
const world = useWorld({
  prepare: (evreg) => fill(evreg, receiver.url),
  async serve(data) {
    program = await startProgram(data, ["--dev"]);
    return { url: program.url, stop: async () => void (await program.end("SIGTERM")) };
  },
});

/** Each screen, and some of what it must go on showing. */
const SCREENS: readonly (readonly [address: string, keeps: string])[] = [
  ["#/", "Unfinished, by cause"],
  ["#/events/1", "order.created"],
  ["#/deliveries/1", "Attempt 1 "],
  ["#/subscriptions/2", "stock"],
  ["#/actions", "order.created"],
  ["#/replays", "שלום"],
  ["#/tokens", "read, publish:"],
  ["#/audit", "Action created"],
  ["#/doctor", "All well"],
  ["#/api/createSubscription", "/v1/subscriptions"],
];
const look = { expected: /ERR_|Failed to (?:load|fetch)/ };
const isLost = (page: Page) => page.getByRole("status").getByText(/^Reconnecting, .+ old$/);
const WITHIN_MS = 180_000;

test(
  "each screen keeps what it shows, says that the server is gone, and goes on when it is back",
  { timeout: WITHIN_MS },
  async () => {
    const pages: Page[] = [];
    for (const [address, keeps] of SCREENS) {
      const page = await world.open(address, look);
      await settled(page);
      await page.locator("main").getByText(keeps).first().waitFor();
      pages.push(page);
    }
    // One more, that looks at what it has not loaded yet.
    const hopper = await world.open("#/none", look);
    await program.end("SIGKILL");

    for (const [index, page] of pages.entries()) {
      await isLost(page).waitFor();
      await page.getByText("Not connected").first().waitFor();
      await page.locator("main").getByText(SCREENS[index]![1]).first().waitFor();
    }
    for (const [address] of SCREENS) {
      await turnTo(hopper, address);
      await hopper
        .locator("main")
        .getByText(/Not connected|This screen could not be loaded/)
        .first()
        .waitFor();
    }

    const { port } = new URL(program.url);
    program = await startProgram(world.data, ["--dev", "--port", port]);
    for (const [index, page] of pages.entries()) {
      await isLost(page).waitFor({ state: "detached" });
      await expect.poll(() => page.getByText("Not connected").count(), { timeout: 30_000 }).toBe(0);
      await page.locator("main").getByText(SCREENS[index]![1]).first().waitFor();
    }
    const again = hopper.getByRole("button", { name: "Load the page again" });
    if ((await again.count()) > 0) await again.click();
    await settled(hopper);
    await hopper.locator("main").getByText("/v1/subscriptions").first().waitFor();
  },
);
