import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Names the browser to take, where it lies elsewhere. */
export const CHROMIUM_PATH = "CHROMIUM_PATH";

/** The browser that the tests of the page run in; `undefined` where there is none. */
export function findChromium(): string | undefined {
  const named = process.env[CHROMIUM_PATH];
  if (named !== undefined && named !== "") return named;
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const places = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  return places.find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
