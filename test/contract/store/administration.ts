import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

/** The store itself: copies of it, what it has found damaged, and its health. */
export function administrationSuite(open: OpenStore): void {
  const on = Fixture.fresh(open);

  it("a copy has the bytes and the digest that it names, and can be closed twice", async () => {
    await on.publish(await on.action(), 20);
    const backup = await on.store.files!.backup();
    const digest = createHash("sha256");
    let bytes = 0;
    for await (const piece of backup.content()) {
      digest.update(piece);
      bytes += piece.byteLength;
    }
    await backup.close();
    await backup.close();
    expect(bytes).toBe(backup.bytes);
    expect(digest.digest("hex")).toBe(backup.sha256);
  });

  it("there is one copy at a time, and events are recorded meanwhile", async () => {
    const action = await on.action();
    const backup = await on.store.files!.backup();
    await expect(on.store.files!.backup()).rejects.toMatchObject({ code: "conflict" });
    expect(await on.publish(action)).toHaveLength(1);
    await backup.close();
    await (await on.store.files!.backup()).close();
  });

  it("a copy that nobody wants any more ends with the signal's reason", async () => {
    const gone = new AbortController();
    gone.abort(new Error("gone"));
    await expect(on.store.files!.backup(gone.signal)).rejects.toThrow("gone");
    await (await on.store.files!.backup()).close();
  });

  it("nothing is damaged in a store that nobody else wrote to", async () => {
    await on.due(3);
    await on.claim();
    expect(on.store.files!.damagedEvents()).toEqual([]);
  });

  it("it is well while it commits, and says that it was closed", async () => {
    const { store } = on;
    expect(store.health()).toEqual({ status: "ok" });
    await store.close();
    await store.close();
    expect(store.health()).toMatchObject({ status: "closed", reason: expect.any(String) as string });
    const late = store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, NOW);
    await expect(late).rejects.toMatchObject({ code: "unavailable" });
  });
}
