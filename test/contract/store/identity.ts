import { expect, it } from "vitest";
import type { OpenOwnStore } from "./fixture.ts";

export function identitySuite(open: OpenOwnStore): void {
  it("is the same at every opening, and unique to the store", async () => {
    const [one, other] = [await open(), await open()];
    const { dataId } = one.store;
    expect(dataId).toMatch(/^[\da-f]{32}$/);
    expect(other.store.dataId).not.toBe(dataId);
    await Promise.all([one.store.close(), other.store.close()]);
    const again = await one.reopen();
    expect(again.dataId).toBe(dataId);
    await again.close();
    for (const each of [one, other]) each.remove();
  });
}
