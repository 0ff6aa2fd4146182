import { afterAll, expect, test } from "vitest";
import type { NewSubscription } from "../../src/domain/subscription.ts";
import type { Replay, ReplayCount } from "../../src/domain/replay.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { deliveriesOf, publish, register, subscribe as subscribeAt } from "../support/records.ts";
import { until } from "../support/until.ts";
import { useServed } from "../support/served.ts";

const FROM = "2020-01-01T00:00:00Z";
const EVENTS = 300;
let receiver: Receiver;

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  await register(evreg, "order.created");
  const event = { action: "order.created", payload: RawJson.fromText("{}") };
  await evreg.events.publishBatch(Array.from({ length: EVENTS }, () => event));
});
const { run, json, expectEach } = served;
afterAll(() => receiver.close());

/** Replays all of the 300 events that are of this status. */
const replay = (id: number, status: string): string =>
  `subscriptions replay ${id} --from ${FROM} --status ${status}`;

/** The replay once it is done. */
async function replayed(id: number, status: string): Promise<Replay> {
  const { rowid } = (await json<Replay>(replay(id, status))).data;
  const read = async () => (await served.evreg.replays.get(rowid)).data;
  await until("the end of the replay", async () => (await read()).status === "done");
  return read();
}

async function subscribe(name: string, more: Partial<NewSubscription> = {}): Promise<number> {
  return (await subscribeAt(served.evreg, name, { handler: receiver.url, ...more })).rowid;
}

test("a replay counts, sends and reports, in each output format", async () => {
  const id = await subscribe("counted");
  const counted = await json<ReplayCount>(`${replay(id, "missed")} --dry-run`);
  expect(counted.data).toMatchObject({ subscription_id: id, selection: "missed", total: EVENTS });
  const { rowid } = await replayed(id, "missed");
  await receiver.received(EVENTS);
  const { data } = await json<Replay>(`replays get ${rowid}`);
  expect(data).toMatchObject({ total: EVENTS, queued: EVENTS });
  expect((await json<Replay[]>(`replays --subscription ${id}`)).data).toEqual([data]);
  const list = `^ID +SUBSCRIPTION +ACTION +EVENTS +STATUS +QUEUED +TOTAL +BEGUN\n.* ${id} billing/counted `;
  await expectEach([
    [`${replay(id, "failed")} --dry-run`, 0, /^Total +0$/m],
    ["replays --status done", 0, new RegExp(list)],
  ]);
});

test("a date without a time means its start in UTC, here and in listings", async () => {
  const id = await subscribe("dated");
  const line = `subscriptions replay ${id} --from 2020-02-29 --to 2020-03-01 --status all --dry-run`;
  const { data: counted } = await json<ReplayCount>(line);
  expect([counted.from, counted.to]).toEqual(["2020-02-29T00:00:00.000Z", "2020-03-01T00:00:00.000Z"]);

  await replayed(id, "missed");
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
  const found = async (noun: string, flag: string, date: string): Promise<number> =>
    (await json<unknown[]>([noun, flag, date, "--limit", "1"])).data.length;
  for (const noun of ["events", "deliveries"]) {
    expect.soft(await found(noun, "--from", "2020-03-01"), noun).toBe(1);
    expect.soft(await found(noun, "--from", tomorrow), noun).toBe(0);
    expect.soft(await found(noun, "--to", tomorrow), noun).toBe(1);
    expect.soft(await found(noun, "--to", "2020-03-01"), noun).toBe(0);
  }
});

test("replays run in the background, one for each subscription, and can be ended", async () => {
  const id = await subscribe("paused", { active: false });
  const started = await run(replay(id, "missed"));
  const waits = `Subscription ${id} is paused: the replay waits until it is active again: evreg subscriptions update ${id} --active`;
  expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining(waits) });
  const rowid = /^Replay +(\d+)$/m.exec(started.stdout)?.[1] ?? "";
  expect(started.stderr).toContain(`evreg replays cancel ${rowid}`);
  await expectEach([
    [replay(id, "all"), 5, "", new RegExp(`Replay ${rowid} of subscription ${id} still runs`)],
    [`replays get ${rowid}`, 0, undefined, `${waits}\n`],
    [`replays --subscription ${id}`, 0, undefined, ""],
    [`replays cancel ${rowid} --json`, 0, /"status":"cancelled"/],
    ["replays cancel 99", 3, "", "Error: There is no replay 99.\nSee those there are: evreg replays\n"],
  ]);
});

test("a mistake is reported for its flag", async () => {
  const all = "subscriptions replay 1 --status all";
  await expectEach([
    [`${all} --from yesterday`, 2, "", /^Error: --from: must be an ISO 8601/],
    [`${all} --from ${FROM} --to ${FROM}`, 2, "", /^Error: --to: must be later than from/],
    [all, 2, "", /--status all needs --from/],
  ]);
});

test("what failed, and what waits, is sent again without a time, as its subscription says", async () => {
  const { evreg } = served;
  receiver.answer = () => ({ status: 500 });
  for (const action of ["order.failed", "order.waiting"]) await register(evreg, action);
  const failed = await subscribe("failed", { action: "order.failed", max_retries: 0 });
  const waiting = await subscribe("waiting", {
    action: "order.waiting",
    max_retries: 1,
    retry_schedule: [3_600_000],
  });
  await publish(evreg, "order.failed");
  await publish(evreg, "order.waiting");
  await deliveriesOf(evreg, { subscription: failed, status: "failed" });
  await deliveriesOf(evreg, { subscription: waiting, status: "waiting" });

  const again = `subscriptions replay ${failed} --status failed`;
  const told = [
    `^See why: evreg subscriptions attempts ${failed}\n`,
    `Try its handler: evreg subscriptions test ${failed}\n`,
    String.raw`Send at once what waits: evreg ${again.replace("failed", "waiting")}\n`,
    String.raw`Send again what failed: evreg ${again}\n`,
  ];
  await expectEach([
    [`subscriptions get ${failed}`, 0, /^State +failing$/m, new RegExp(told.join(""), "m")],
    [`subscriptions get ${failed} --json`, 0, undefined, ""],
  ]);
  receiver.answer = () => ({});
  await expectEach([
    [again, 0, /^Total +not counted yet$/m, /It goes on in the background/],
    ["subscriptions replay billing/waiting --status waiting", 0, /^From +the first event$/m],
  ]);
  for (const subscription of [failed, waiting])
    await deliveriesOf(evreg, { subscription, status: "delivered" });
});

test("what blocks an ordered subscription is shown, and can be skipped", async () => {
  const { evreg } = served;
  const action = "order.blocked";
  await register(evreg, action);
  const ordered = { action, max_retries: 0, ordered: true, retry_schedule: [3_600_000] };
  const id = await subscribe("blocked", ordered);
  receiver.answer = () => ({ status: 500 });
  const blocked = async () => (await evreg.subscriptions.get(id)).data.blocked_by;
  const first = await publish(evreg, action);
  await until("it to wait for a retry", async () => (await blocked()) !== null);
  receiver.answer = () => ({});
  const [{ rowid: delivery } = { rowid: 0 }] = await deliveriesOf(evreg, { event: first.rowid });
  const second = await publish(evreg, action);
  const [{ rowid: later } = { rowid: 0 }] = await deliveriesOf(evreg, { event: second.rowid });
  const skip = `deliveries skip ${delivery}`;
  const by = `^State +blocked\n(?:.*\n)*Blocked by +delivery ${delivery}, which is`;
  const behind = `Delivery ${later} waits behind another one of its subscription ${id}, which keeps an order. See what fails: evreg deliveries list --subscription ${id} --status waiting\n`;
  await expectEach([
    [`subscriptions get ${id}`, 0, new RegExp(`${by} tried on; to go past it: evreg ${skip}\n`, "m")],
    [`deliveries get ${later}`, 0, undefined, behind],
    [`deliveries get ${delivery}`, 0, undefined, ""],
    [`deliveries skip ${later}`, 5, "", /its subscription is ordered, and another delivery goes before it/],
  ]);
  await evreg.subscriptions.update(id, { active: false });
  const held = new RegExp(`delivery ${delivery}, which is held until it is active again; to go past`);
  await expectEach([
    [`subscriptions get ${id}`, 0, held],
    [skip, 0, /^Status +failed$/m, ""],
    [skip, 5, ""],
  ]);
  expect(await blocked()).toBeNull();
});

test("without a server a replay is recorded, and continues with the next server", async () => {
  const id = await subscribe("later");
  const before = receiver.requests.length;
  const started = await served.withoutServer(() => run(replay(id, "missed")));
  expect(started).toMatchObject({ code: 0 });
  expect(started.stderr).toContain("waits for a server on this data folder: evreg serve");
  await receiver.received(before + EVENTS);
});
