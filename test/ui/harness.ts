import axe from "axe-core";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import type { Evreg } from "../../src/evreg.ts";
import { type Served, type ServedOptions, useServed } from "../support/served.ts";
import { CHROMIUM_PATH, findChromium } from "./chromium.ts";

// The page as people have it: the built one, at a real server, in a real browser. After each test it must have broken no
// rule of its policy, written no error to the console, and asked nothing of any other origin.

export interface Look {
  readonly scheme?: "light" | "dark";
  /** In CSS pixels. */
  readonly width?: number;
  readonly height?: number;
  readonly touch?: boolean;
  /** For what is measured or shown while it moves; everything else stands still. */
  readonly motion?: boolean;
  /** Of the reader, as `Europe/Berlin`; by default UTC. */
  readonly zone?: string;
  /** Kept as if it had been pasted into the page. */
  readonly token?: string;
  /** Errors in the console that the test brings about, such as that of an answer with status 401. */
  readonly expected?: RegExp;
}

export interface World extends Served {
  /** Opens the page in a new window, at an address such as `#/events`, once it has shown something. */
  open(address: string, look?: Look): Promise<Page>;
}

interface Options extends ServedOptions {
  /** What all tests of the file build on. */
  readonly prepare?: (evreg: Evreg) => Promise<unknown>;
}

/** A server and a browser for all tests of a file. */
export function useWorld({ prepare, ...options }: Options = {}): World {
  const served = useServed(({ evreg }) => Promise.resolve(prepare?.(evreg)), options);
  let browser: Browser;
  const windows: Window[] = [];
  const contexts = new Map<string, Promise<BrowserContext>>();
  beforeAll(async () => {
    browser = await launch();
  });
  afterEach(async () => {
    const faults: string[] = [];
    for (const window of windows.splice(0)) faults.push(...(await window.close()));
    expect(faults).toEqual([]);
  });
  afterAll(() => browser?.close());
  return Object.assign(served, {
    async open(address: string, look: Look = {}) {
      const { url } = served.server;
      const window = await Window.open(await contextFor(browser, contexts, look), url, look);
      windows.push(window);
      await window.page.goto(`${url}/ui/${address}`);
      await window.page.locator("main").first().waitFor();
      return window.page;
    },
  });
}

function launch(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    throw new Error(`There is no chromium on the PATH; install one, or name it with ${CHROMIUM_PATH}.`);
  }
  return chromium.launch({
    executablePath,
    // Names lead nowhere, so that nothing can leave this machine unnoticed.
    args: ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--disable-gpu"],
    // Its sandbox does not work as root.
    chromiumSandbox: process.getuid?.() !== 0,
  });
}

/** The context for windows of this look: making one takes as long as loading the page. */
function contextFor(
  browser: Browser,
  contexts: Map<string, Promise<BrowserContext>>,
  look: Look,
): Promise<BrowserContext> {
  const { scheme = "light", width = 1280, height = 900, touch = false, motion = false, zone = "UTC" } = look;
  const options: BrowserContextOptions = {
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: motion ? "no-preference" : "reduce",
    hasTouch: touch,
    timezoneId: zone,
    locale: "en-GB",
    permissions: ["clipboard-read", "clipboard-write"],
  };
  const key = JSON.stringify(options);
  const context = contexts.get(key) ?? browser.newContext(options);
  contexts.set(key, context);
  return context;
}

/** A window that keeps nothing for the next one, and what must not happen in it. */
class Window {
  readonly page: Page;
  readonly #faults: string[] = [];

  private constructor(page: Page) {
    this.page = page;
  }

  static async open(context: BrowserContext, url: string, look: Look): Promise<Window> {
    const window = new Window(await context.newPage());
    await window.#watch(url, look);
    if (look.token !== undefined) {
      await window.page.addInitScript((token) => sessionStorage.setItem("evreg.token", token), look.token);
    }
    return window;
  }

  async #watch(url: string, { expected }: Look): Promise<void> {
    const { page } = this;
    const fault = (text: string): void => {
      if (expected?.test(text) !== true) this.#faults.push(text);
    };
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== url) fault(`asked ${request.method()} ${request.url()}`);
    });
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") fault(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => fault(`threw ${error.message}`));
    page.on("websocket", (socket) => fault(`opened ${socket.url()}`));
    page.on("dialog", (dialog) => {
      fault(`asked in a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("popup", (popup) => fault(`opened ${popup.url()}`));
    await page.exposeFunction("policyViolated", (text: string) => fault(`policy: ${text}`));
    await page.addInitScript(() => {
      addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) => {
        const told = (globalThis as unknown as { policyViolated: (text: string) => void }).policyViolated;
        told(`${violatedDirective} ${blockedURI} ${sample}`);
      });
    });
  }

  async close(): Promise<readonly string[]> {
    await this.page.evaluate(() => localStorage.clear());
    await this.page.close();
    return this.#faults;
  }
}

/** Leads a page that is open to another address of it, as a link does. */
export async function turnTo(page: Page, address: string): Promise<void> {
  await page.evaluate(async (hash) => {
    if (location.hash === hash) return;
    const changed = new Promise((resolve) => {
      addEventListener("hashchange", resolve, { once: true });
    });
    location.hash = hash;
    await changed;
    // Drawn, and what it then asks for begun.
    for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  }, address);
}

/** Leads a page to another address, and waits until all of it is there. */
export async function visit(page: Page, address: string): Promise<void> {
  await turnTo(page, address);
  await settled(page);
}

/** Waits until the screen is there and waits for nothing itself. */
export async function settled(page: Page): Promise<void> {
  await page.locator("main h1").first().waitFor({ state: "attached" });
  await expect.poll(() => page.locator("[aria-busy=true]").count(), { timeout: 30_000 }).toBe(0);
}

/** Presses the key that leads to the field, as often as it takes: a screen hears its keys a moment after it is drawn. */
export async function pressInto(page: Page, key: string, field: Locator): Promise<void> {
  const isThere = (): Promise<boolean> => field.evaluate((element) => element === document.activeElement);
  const press = async (): Promise<boolean> => {
    await page.keyboard.press(key);
    return isThere();
  };
  await field.waitFor();
  await expect.poll(press, { timeout: 30_000 }).toBe(true);
}

/** How many CSS pixels the page is wider than its window, and would be scrolled sideways. */
export function overflowOf(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
}

/** What axe finds wrong in the page as it is now, a line for each place: rules of WCAG 2.2 A and AA, and good practice. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  // Not through a script of the page's, which its policy forbids.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate(async () => {
    const inPage = (globalThis as unknown as { axe: typeof axe }).axe;
    // It would load style sheets a second time.
    return inPage.run({ preload: false, resultTypes: ["violations"] });
  });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = "" }) => {
      return `${id}: ${help}: ${html.slice(0, 200)}: ${failureSummary.replaceAll(/\s+/g, " ").slice(0, 300)}`;
    }),
  );
}
