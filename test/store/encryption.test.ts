import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";

import { FORM } from "../../src/store/libsql/files/schema.ts";
import type { OpenOptions } from "../../src/store/libsql/open.ts";
import type { ClaimedSubscription } from "../../src/store/queue.ts";
import { type EncryptionKeys, Vault } from "../../src/store/secret-cipher.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ONE_ACTION, ONE_REVISION, writeOlderFile } from "../support/older-file.ts";
import { eventOf, newAction, openStore, subscriptionTo, useScratch } from "./opened-store.ts";
import { fileSql } from "../support/file-sql.ts";

const [A, B, C] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const scratch = useScratch();

const open = (encryption?: EncryptionKeys, options: Partial<OpenOptions> = {}): Promise<Store> =>
  openStore(scratch.path, { encryption, clock: new ManualClock(NOW), ...options });

const file = (): string => join(scratch.path, "evreg.db");
const secretOf = (n: number): string => `whsec_the-secret-of-number-${n}-`.padEnd(50, "x");

/** Subscriptions 1 to `count`; each third has a bearer value of its own, and each fifth was rotated. */
async function fill(store: Store, count: number): Promise<void> {
  await newAction(store, "a.b", NOW);
  // Asked for at once, they are done in this order, and committed together.
  const writes: Promise<unknown>[] = [];
  for (let n = 1; n <= count; n += 1) {
    const bearer = n % 3 === 0 ? ({ kind: "own", token: `bearer-of-${n}` } as const) : undefined;
    const own = { subscription: `s${n}`, secret: secretOf(n), ...(bearer && { bearer }) };
    writes.push(store.catalog.createSubscription(subscriptionTo("a.b", own), NOW));
    if (n % 5 === 0) {
      writes.push(
        store.catalog.rotateSecret(n, { secret: secretOf(n + 1_000_000), overlapMs: HOUR_MS }, NOW),
      );
    }
  }
  await Promise.all(writes);
}

/** What a delivery of each subscription would be signed with, by an event published now. */
async function claimed(store: Store): Promise<Map<number, ClaimedSubscription>> {
  const action = await store.catalog.findAction("a.b");
  await store.events.record([eventOf(action!.rowid)], NOW);
  const { claims } = await store.queue.claim(claimRequest({ nowMs: NOW, limit: 1_000 }));
  return new Map(claims.map(({ subscription }) => [subscription.subscriptionId, subscription]));
}

function expectAll(secrets: Map<number, ClaimedSubscription>, ids: readonly number[]): void {
  expect([...secrets.keys()].toSorted((one, other) => one - other)).toEqual(ids);
  for (const n of ids) {
    const { secret, previous, bearer } = secrets.get(n)!;
    const isRotated = n % 5 === 0;
    expect({ secret, previous, bearer }).toEqual({
      secret: secretOf(isRotated ? n + 1_000_000 : n),
      previous: isRotated ? { secret: secretOf(n), untilMs: NOW + HOUR_MS } : undefined,
      bearer: n % 3 === 0 ? `bearer-of-${n}` : undefined,
    });
  }
}

/** Whether the file or its log have these bytes anywhere, free pages included. */
function traces(text: string): string[] {
  return readdirSync(scratch.path).filter((name) => readFileSync(join(scratch.path, name)).includes(text));
}

/** An action and a subscription to it, as older forms have them. */
function oldSubscription(form: 10 | 21, secret: string): readonly string[] {
  const bound = form === 10 ? ["action_id", "1"] : ["action", "'a.b'"];
  return [
    ONE_ACTION.replace("'a'", "'a.b'"),
    ONE_REVISION,
    `INSERT INTO subscription (application, subscription, ${bound[0]}, handler, max_retries, active, created_ms)
      VALUES ('x', 's1', ${bound[1]}, 'https://hooks.example.com/', 5, 1, 1)`,
    `INSERT INTO binding (action_id, subscription_id${form === 10 ? "" : ", receives"})
      VALUES (1, 1${form === 10 ? "" : ", 1"})`,
    `INSERT INTO subscription_secret (subscription_id, secret, bearer) VALUES (1, '${secret}', 'secret')`,
  ];
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

it("a file with a key from the start never contains a secret, nor does its log, and signs like one without", async () => {
  const store = await open({ key: A });
  await fill(store, 30);
  await store.catalog.updateSubscription(1, { bearer: { kind: "own", token: "bearer-of-one" } }, NOW);
  for (const text of ["whsec_", "bearer-of"]) expect(traces(text)).toEqual([]);
  await store.catalog.updateSubscription(1, { bearer: { kind: "secret" } }, NOW);
  await store.close();
  expect(traces("whsec_")).toEqual([]);
  // Two texts under one key and one nonce would show what they have in common.
  const texts = fileSql(
    file(),
    `SELECT secret AS text FROM subscription_secret
      UNION ALL SELECT bearer_token FROM subscription_secret WHERE bearer_token IS NOT NULL`,
  ) as { text: string }[];
  expect(new Set(texts.map(({ text }) => text.split(" ")[2]!.slice(0, 16))).size).toBe(40);
  const again = await open({ key: A });
  expectAll(await claimed(again), upTo(30));
  await again.close();
});

describe("a file that gets its key later", () => {
  it("is encrypted at that start, and nothing is left in plain text, not of deleted subscriptions either", async () => {
    const plain = await open();
    await fill(plain, 300);
    const changed = upTo(300).filter((n) => n > 150 && n % 2 === 1);
    for (const bearer of [{ kind: "own", token: `long-${"y".repeat(900)}` }, { kind: "secret" }] as const) {
      await Promise.all(changed.map((n) => plain.catalog.updateSubscription(n, { bearer }, NOW)));
    }
    const deleted = upTo(300).filter((n) => n > 100);
    await Promise.all(deleted.map((n) => plain.catalog.deleteSubscription(n, NOW)));
    await plain.close();
    // As an earlier start leaves it that was interrupted in the middle.
    writeFileSync(`${file()}.unfinished-1`, "whsec_half");
    expect(traces("whsec_").toSorted()).toEqual(["evreg.db", "evreg.db.unfinished-1"]);

    const said: object[] = [];
    const logger = { ...silentLogger, info: (fields: object) => said.push(fields) };
    const store = await open({ key: A }, { logger });
    expect(said).toContainEqual({ subscriptions: 100 });
    for (const text of ["whsec_", "bearer-of-", "yyyyyyyy"]) expect(traces(text)).toEqual([]);
    expectAll(await claimed(store), upTo(100));
    await store.close();
    expect(traces("whsec_")).toEqual([]);
  });

  it.each([10, 21] as const)(
    "is encrypted with the upgrade of form %i, which names the copy",
    async (form) => {
      writeOlderFile(file(), form, ...oldSubscription(form, secretOf(1)));
      const said: object[] = [];
      const store = await open(
        { key: A },
        { logger: { ...silentLogger, info: (fields) => said.push(fields) } },
      );
      expect((await claimed(store)).get(1)).toMatchObject({ secret: secretOf(1) });
      await store.close();
      expect(traces("whsec_")).toEqual([`evreg.db.before-v${FORM}`]);
      expect(said).toContainEqual({ form: FORM, copy: `${file()}.before-v${FORM}` });
      expect(said).toContainEqual({ subscriptions: 1 });
    },
  );

  it.each([10, 21] as const)("has secrets of form %i read by the numbers of subscriptions", async (form) => {
    const vault = new Vault(A);
    const proof = vault.seal("proof of the key", "evreg");
    const secret = vault.seal("secret of subscription 1", secretOf(1));
    const bearer = vault.seal("bearer token of subscription 1", "bearer-of-1");
    writeOlderFile(
      file(),
      form,
      ...oldSubscription(form, secret),
      `UPDATE subscription_secret SET bearer = 'own', bearer_token = '${bearer}'`,
      `INSERT INTO encryption (one, proof) VALUES (1, '${proof}')`,
    );
    await expect(open({ key: B })).rejects.toMatchObject({ code: "usage" });
    const store = await open({ key: B, previous: A });
    expect((await claimed(store)).get(1)).toMatchObject({ secret: secretOf(1), bearer: "bearer-of-1" });
    await store.close();
    await (await open({ key: B })).close();
  });
});

async function encrypted(): Promise<void> {
  const store = await open({ key: A });
  await fill(store, 10);
  await store.close();
}

describe("the key of an encrypted file", () => {
  it("is required, and changed by one start with both keys, after which the old one opens nothing", async () => {
    await encrypted();
    const isRefused = async (keys: EncryptionKeys | undefined, words: string): Promise<void> => {
      const before = readFileSync(file());
      const message = expect.stringContaining(words) as string;
      await expect(open(keys)).rejects.toMatchObject({ code: "usage", message });
      expect(readFileSync(file()).equals(before)).toBe(true);
    };
    const wrong = "no key that was given is the one";
    await isRefused(undefined, "no key was given");
    await isRefused({ key: B, previous: C }, wrong);
    const both = await open({ key: B, previous: A });
    expectAll(await claimed(both), upTo(10));
    await both.close();
    await isRefused({ key: C, previous: A }, wrong);
    for (const keys of [{ key: B }, { key: B, previous: A }]) await (await open(keys)).close();
  });

  it("opens no secret that was moved to another name, application or purpose, or replaced, and other subscriptions work", async () => {
    await encrypted();
    fileSql(
      file(),
      `UPDATE subscription_secret SET secret = (SELECT secret FROM subscription_secret WHERE subscription_id = 2)
        WHERE subscription_id = 1`,
      "UPDATE subscription_secret SET secret = 'whsec_of-somebody-else' WHERE subscription_id = 4",
      "UPDATE subscription_secret SET bearer_token = 'plain' WHERE subscription_id = 6",
      "UPDATE subscription SET application = 'y' WHERE rowid = 8",
      "UPDATE subscription_secret SET bearer_token = secret WHERE subscription_id = 9",
    );
    const store = await open({ key: A });
    const secrets = await claimed(store);
    for (const n of [1, 4, 6, 8, 9]) {
      expect(secrets.get(n)).toMatchObject({ subscriptionId: n, secret: undefined });
      secrets.delete(n);
    }
    expectAll(secrets, [2, 3, 5, 7, 10]);

    // A new secret mends it; the one that cannot be read has no overlap.
    const { previous_secret_until: until } =
      (await store.catalog.rotateSecret(4, { secret: "whsec_new", overlapMs: HOUR_MS }, NOW)) ?? {};
    expect(until).toBeNull();
    expect((await claimed(store)).get(4)).toMatchObject({ secret: "whsec_new" });
    await store.close();
  });
});

it("secrets that are no longer valid are removed: a deleted subscription's, and one whose overlap ended before a start", async () => {
  const store = await open();
  await fill(store, 5);
  for (const n of [1, 2, 3]) await store.catalog.deleteSubscription(n, NOW);
  await store.close();
  for (const [atMs, previous] of [
    [NOW + HOUR_MS - 1, secretOf(5)],
    [NOW + HOUR_MS, null],
  ] as const) {
    await (await open(undefined, { clock: new ManualClock(atMs) })).close();
    const kept = fileSql(
      file(),
      "SELECT subscription_id AS id, previous_secret AS previous FROM subscription_secret",
    );
    expect(kept).toEqual([
      { id: 4, previous: null },
      { id: 5, previous },
    ]);
  }
});
