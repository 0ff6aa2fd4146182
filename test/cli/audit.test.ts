import { expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { AuditedChange, AuditEntry } from "../../src/domain/audit.ts";
import { AUDITED_CHANGES } from "../../src/model/answers.ts";
import { publish, register, subscribe } from "../support/records.ts";
import { serveHere } from "../support/server.ts";
import { useServed } from "../support/served.ts";

/** Deliveries that wait for a retry. */
let waiting: readonly number[];

const served = useServed(
  async ({ evreg }) => {
    await register(evreg, "a.b");
    const { rowid } = await subscribe(evreg, "base", {
      action: "a.b",
      mode: "pull",
      retry_schedule: [3_600_000],
    });
    for (let count = 0; count < 4; count += 1) await publish(evreg, "a.b");
    const { data: claimed } = await evreg.subscriptions.claim(rowid, { max: 4, wait_ms: 0 });
    const results = claimed.map(({ lease }) => ({ lease, outcome: "failed", reason: "for now" }) as const);
    await evreg.subscriptions.finish(rowid, { results });
    waiting = claimed.map(({ delivery_id }) => delivery_id);
  },
  { dev: false },
);
const { run, json, expectEach } = served;

/** The commands that make each change, in an order in which each can be done. */
const commandsFor = (name: string, retried: number, skipped: number) => {
  const made = `shop/${name}`;
  const create = `--application shop --subscription ${name} --action a.b --mode pull --no-active`;
  return [
    ["action.created", `actions create ${name} --application shop --schema -`],
    ["action.updated", `actions update ${name} --mode none`],
    ["subscription.created", `subscriptions create ${create}`],
    ["subscription.updated", `subscriptions update ${made} --max-retries 3`],
    ["subscription.secret_rotated", `subscriptions rotate-secret ${made}`],
    ["replay.started", `subscriptions replay ${made} --from 2020-01-01 --status all`],
    ["replay.cancelled", "replays cancel LAST"],
    ["delivery.retried", `deliveries retry ${retried}`],
    ["delivery.skipped", `deliveries skip ${skipped}`],
    ["subscription.deleted", `subscriptions delete ${made}`],
    ["token.created", `tokens create ${name} --scope read`],
    ["token.revoked", "tokens revoke LAST"],
  ] as const satisfies readonly (readonly [AuditedChange, string])[];
};
const CHANGES = commandsFor("any", 0, 0).map(([change]) => change);

/** Gives each command, and looks at what is kept of all. */
async function expectOrigin(commands: ReturnType<typeof commandsFor>, by: string, address: string | null) {
  let last = 0;
  for (const [, line] of commands) {
    const outcome = await run(`${line.replace("LAST", String(last))} --json`, { input: "{}" });
    expect(outcome).toMatchObject({ code: 0 });
    last = (JSON.parse(outcome.stdout) as { data: { rowid: number } }).data.rowid;
  }
  const { data: kept } = await json<readonly AuditEntry[]>(`audit --limit ${commands.length}`);
  expect(kept).toMatchObject(CHANGES.map((change) => ({ change, by, address })).toReversed());
}

test("each change that is kept is made by a command, but for the use of a secret by a claim", () => {
  const others: readonly AuditedChange[] = ["subscription.secret_used", "data.restored"];
  expect([...CHANGES, ...others].toSorted()).toEqual([...AUDITED_CHANGES].toSorted());
});

test("the origin of each change is the token's name with the address, and on a data folder it is local", async () => {
  await expectOrigin(commandsFor("at-server", waiting[0]!, waiting[1]!), "bootstrap", "127.0.0.1");
  await served.withoutServer(async () => {
    await expectOrigin(commandsFor("in-folder", waiting[2]!, waiting[3]!), "local", null);
    const open = await serveHere(served.data, { dev: true });
    const evreg = connect({ url: open.url });
    await register(evreg, "a.by-hand");
    expect((await evreg.audit.list()).data[0]).toMatchObject({ by: "local", address: "127.0.0.1" });
    await evreg.close();
    await open.stop();
  });
});

test("for a person each change is a line, as long back as is asked for", async () => {
  await run("actions update a.b --mode none");
  const head = "^ID +AT +BY +FROM +CHANGE +WHAT +MEMBERS\n";
  const line = String.raw`.* bootstrap +\S+ +action\.updated +\d+ a\.b +compatibility full → none$`;
  await expectEach([
    ["audit --since 1h", 0, new RegExp(head + line, "m")],
    ["audit --to 2020-01-01", 0, "", "No change matches.\n"],
    ["audit --limit 1", 0, /\n/, /^1 change shown\. Next page: evreg audit --limit 1 --after \d+\n$/],
  ]);
});

test("a restore is the last change before those that come after it", async () => {
  const restored = "--data restored";
  await expectEach([
    ["backup copy.db", 0],
    [`restore copy.db ${restored}`, 0],
    [`tokens create later --scope read ${restored}`, 0],
  ]);
  const { data: all } = await json<readonly AuditEntry[]>(`audit ${restored}`);
  expect(all[0]).toMatchObject({ change: "token.created", name: "later", by: "local", token_id: null });
  expect(all[1]).toMatchObject({ change: "data.restored", record_id: null, by: "local" });
  expect(all[2]).toMatchObject({ change: "action.updated" });
});
