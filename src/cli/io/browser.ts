import { spawn } from "node:child_process";

/** What opens an address on each system. None is a shell. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};
const ELSEWHERE = ["xdg-open"];

/** A program that runs for longer is the browser itself. */
const ENDS_WITHIN_MS = 3_000;

/**
 * Opens an address in the person's browser. Others on the machine may see it, in the list of processes, until the browser
 * has it.
 * @returns whether that began; `false` where there is no browser
 */
export function openInBrowser(url: string): Promise<boolean> {
  const { SSH_CONNECTION, DISPLAY, WAYLAND_DISPLAY } = process.env;
  // It could only be a browser in a terminal, which knows no scripts.
  if (SSH_CONNECTION && !DISPLAY && !WAYLAND_DISPLAY) return Promise.resolve(false);
  const [program = "", ...words] = OPENERS[process.platform] ?? ELSEWHERE;
  return new Promise((resolve) => {
    const child = spawn(program, [...words, url], { stdio: "ignore", detached: true });
    const timer = setTimeout(() => resolve(true), ENDS_WITHIN_MS);
    const end = (hasOpened: boolean): void => {
      clearTimeout(timer);
      resolve(hasOpened);
    };
    child.on("error", () => end(false)).on("exit", (code) => end(code === 0));
    child.unref();
  });
}
