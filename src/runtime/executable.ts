import { getAsset, isSea } from "node:sea";

/** The scripts of threads as they lie in the single executable. */
export const STORE_THREAD = "store-thread.cjs";
export const CHECK_THREAD = "check-thread.cjs";

/** The text of a part carried inside the single executable; `undefined` when this is not one. */
export function textInside(name: string): string | undefined {
  return isSea() ? getAsset(name, "utf8") : undefined;
}

/** The words that start this program: the single executable, or Node with the installed entry. */
export function programWords(): readonly string[] {
  const [, entry] = process.argv;
  return isSea() || entry === undefined ? [process.execPath] : [process.execPath, entry];
}
