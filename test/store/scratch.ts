import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";

/** A folder of its own for each test, removed after it. */
export function useScratch(): { readonly path: string } {
  const scratch = { path: "" };
  beforeEach(() => {
    scratch.path = mkdtempSync(join(tmpdir(), "evreg-store-"));
  });
  afterEach(() => rmSync(scratch.path, { recursive: true, force: true }));
  return scratch;
}
