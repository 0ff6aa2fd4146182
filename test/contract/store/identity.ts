import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { OpenStore } from "./fixture.ts";

export function identitySuite(open: OpenStore): void {
  it("is the same at every opening, and unique to the store", async () => {
    const folder = mkdtempSync(join(tmpdir(), "evreg-store-"));
    const ids: string[] = [];
    for (const name of ["one", "one", "other"]) {
      const store = await open(join(folder, name));
      ids.push(store.dataId);
      await store.close();
    }
    rmSync(folder, { recursive: true, force: true });
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(ids[0]).toMatch(/^[\da-f]{32}$/);
  });
}
