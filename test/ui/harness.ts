import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { temporaryFolder } from "../support/program.ts";
import { type Changes, serveHere, type TestServer } from "../support/server.ts";
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

export interface World {
  readonly server: TestServer;
  /** With every right, past the page. */
  readonly evreg: Evreg;
  readonly data: string;
  /** The admin token; with `dev` none is needed. */
  readonly token: string | undefined;
  /** Opens the page in a new window, at an address such as `#/events`, once it has shown something. */
  open(address: string, look?: Look): Promise<Page>;
}

interface Options {
  /** Without tokens, which is the default here. */
  readonly dev?: boolean;
  readonly changes?: Changes;
  /** What all tests of the file build on. */
  readonly prepare?: (evreg: Evreg) => Promise<unknown>;
}

/** A server and a browser for all tests of a file. */
export function useWorld({ dev = true, changes = {}, prepare }: Options = {}): World {
  const folder = temporaryFolder();
  const data = join(folder.path, "data");
  let server: TestServer;
  let evreg: Evreg;
  let token: string | undefined;
  let browser: Browser;
  const windows: Window[] = [];
  beforeAll(async () => {
    mkdirSync(data, { mode: 0o700 });
    [server, browser] = await Promise.all([serveHere(data, { dev, changes }), launch()]);
    if (!dev) token = readFileSync(join(data, "token"), "utf8").trim();
    evreg = connect(token === undefined ? { url: server.url } : { url: server.url, token });
    await prepare?.(evreg);
  });
  afterEach(async () => {
    const faults: string[] = [];
    for (const window of windows.splice(0)) faults.push(...(await window.close()));
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await evreg?.close();
    await server?.stop();
    folder.remove();
  });
  return {
    data,
    get server() {
      return server;
    },
    get evreg() {
      return evreg;
    },
    get token() {
      return token;
    },
    async open(address, look = {}) {
      const window = await Window.open(browser, server.url, look);
      windows.push(window);
      await window.page.goto(`${server.url}/ui/${address}`);
      await window.page.locator("main").first().waitFor();
      return window.page;
    },
  };
}

function launch(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    throw new Error(`There is no chromium on the PATH; install one, or name it with ${CHROMIUM_PATH}.`);
  }
  return chromium.launch({
    executablePath,
    // Names lead nowhere, so that nothing can leave this machine unnoticed.
    args: ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
    // Its sandbox does not work as root.
    chromiumSandbox: process.getuid?.() !== 0,
  });
}

/** A window of its own, with nothing from before, and what must not happen in it. */
class Window {
  readonly page: Page;
  readonly #context: BrowserContext;
  readonly #faults: string[] = [];

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
  }

  static async open(browser: Browser, url: string, look: Look): Promise<Window> {
    const { scheme = "light", width = 1280, height = 900, touch = false, motion = false } = look;
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      reducedMotion: motion ? "no-preference" : "reduce",
      hasTouch: touch,
      timezoneId: look.zone ?? "UTC",
      locale: "en-GB",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const window = new Window(context, await context.newPage());
    await window.#watch(url, look);
    if (look.token !== undefined) {
      await context.addInitScript((token) => sessionStorage.setItem("evreg.token", token), look.token);
    }
    return window;
  }

  async #watch(url: string, { expected }: Look): Promise<void> {
    const fault = (text: string): void => {
      if (expected?.test(text) !== true) this.#faults.push(text);
    };
    const context = this.#context;
    context.on("request", (request) => {
      if (new URL(request.url()).origin !== url) fault(`asked ${request.method()} ${request.url()}`);
    });
    context.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") fault(`console: ${message.text()}`);
    });
    context.on("weberror", (error) => fault(`threw ${error.error().message}`));
    this.page.on("websocket", (socket) => fault(`opened ${socket.url()}`));
    await context.exposeFunction("policyViolated", (text: string) => fault(`policy: ${text}`));
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) => {
        const told = (globalThis as unknown as { policyViolated: (text: string) => void }).policyViolated;
        told(`${violatedDirective} ${blockedURI} ${sample}`);
      });
    });
  }

  async close(): Promise<readonly string[]> {
    await this.#context.close();
    return this.#faults;
  }
}

/** What axe finds wrong in the page as it is now, a line for each place: rules of WCAG 2.2 A and AA, and good practice. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  // Not through a script of the page's, which its policy forbids.
  await page.evaluate(axe.source);
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

/** The addresses of all screens that the navigation leads to, such as `#/events`. */
export async function screensOf(page: Page): Promise<readonly string[]> {
  const links = await page
    .locator('nav a[href^="#/"]')
    .evaluateAll((found) => found.map((link) => link.getAttribute("href") ?? ""));
  return [...new Set(links)];
}
