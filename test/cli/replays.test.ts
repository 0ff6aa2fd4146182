import { afterAll, expect, test } from "vitest";
import type { Replay, ReplayCount } from "../../src/domain/replay.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { useServed } from "../support/served.ts";

const FROM = "2020-01-01T00:00:00Z";
const EVENTS = 300;
let receiver: Receiver;

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  await evreg.actions.create({ action: "order.created", application: "shop", schemata: { type: "object" } });
  const event = { action: "order.created", payload: RawJson.fromText("{}") };
  await evreg.events.publishBatch(Array.from({ length: EVENTS }, () => event));
});
const { run, json, expectEach } = served;
afterAll(() => receiver.close());

/** The words that replay all of the 300 events that are of this status. */
function replay(id: number, status: string): string[] {
  return ["subscriptions", "replay", String(id), "--from", FROM, "--status", status];
}

async function subscribe(name: string): Promise<number> {
  const names = { application: "billing", subscription: name, action: "order.created" };
  return (await served.evreg.subscriptions.create({ ...names, handler: receiver.url })).data.rowid;
}

test("a replay counts, sends and reports, in each output format", async () => {
  const id = await subscribe("counted");
  const counted = await json<ReplayCount>([...replay(id, "missed"), "--dry-run"]);
  expect(counted.data).toMatchObject({ subscription_id: id, selection: "missed", total: EVENTS });
  expect((await run([...replay(id, "failed"), "--dry-run"])).stdout).toMatch(/^Total +0$/m);

  const waited = await json<Replay>([...replay(id, "missed"), "--wait"]);
  expect(waited.data).toMatchObject({ status: "done", total: EVENTS, queued: EVENTS });
  await receiver.received(EVENTS);
  const { rowid } = waited.data;
  expect((await json<Replay>(`replays get ${rowid}`)).data).toEqual(waited.data);
  expect((await json<Replay[]>(`replays --subscription ${id}`)).data).toEqual([waited.data]);
  const { stdout } = await run("replays --status done");
  expect(stdout).toMatch(/^ID +SUBSCRIPTION +ACTION +EVENTS +STATUS +QUEUED +TOTAL +BEGUN$/m);
  expect(stdout).toContain(`${id} billing/counted`);
});

test("a date without a time means its start in UTC, here and in listings", async () => {
  const id = await subscribe("dated");
  const words = ["subscriptions", "replay", String(id), "--from", "2020-02-29", "--to", "2020-03-01"];
  const { data: counted } = await json<ReplayCount>([...words, "--status", "all", "--dry-run"]);
  expect([counted.from, counted.to]).toEqual(["2020-02-29T00:00:00.000Z", "2020-03-01T00:00:00.000Z"]);

  await run([...replay(id, "missed"), "--wait"]);
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
  const id = await subscribe("paused");
  await served.evreg.subscriptions.update(id, { active: false });
  const started = await run(replay(id, "missed"));
  const waits = `Subscription ${id} is paused: the replay waits until it is active again: evreg subscriptions update ${id} --active`;
  expect(started).toMatchObject({ code: 0, stderr: expect.stringContaining(waits) });
  const rowid = /^Replay +(\d+)$/m.exec(started.stdout)?.[1] ?? "";
  expect(started.stderr).toContain(`evreg replays cancel ${rowid}`);
  await expectEach([
    [replay(id, "all"), 5, "", new RegExp(`Replay ${rowid} of subscription ${id} still runs`)],
    [`replays get ${rowid}`, 0, undefined, `${waits}\n`],
    [`replays --subscription ${id}`, 0, undefined, `${waits}\n`],
    [`replays cancel ${rowid} --json`, 0, /"status":"cancelled"/],
    ["replays cancel 99", 3, "", "Error: There is no replay 99.\nSee those there are: evreg replays\n"],
  ]);
});

test("following a replay that is cancelled meanwhile ends with 1", async () => {
  const id = await subscribe("cancelled");
  await served.evreg.subscriptions.update(id, { active: false });
  const following = run([...replay(id, "missed"), "--wait"]);
  let running: Replay | undefined;
  while (running === undefined) {
    [running] = (await served.evreg.replays.list({ subscription: id })).data;
  }
  await served.evreg.replays.cancel(running.rowid);
  const { code, stderr } = await following;
  expect(code).toBe(1);
  expect(stderr).toContain(
    `Replay ${running.rowid} did not get to its end. What was not sent, another one sends: evreg subscriptions replay`,
  );
});

test("a mistake is reported for its flag", async () => {
  const all = "subscriptions replay 1 --status all";
  await expectEach([
    [`${all} --from yesterday`, 2, "", /^Error: --from: must be an ISO 8601/],
    [`${all} --from ${FROM} --to ${FROM}`, 2, "", /^Error: --to: must be later than from/],
    [all, 2, "", /--status all needs --from/],
    [`${all} --from ${FROM} --wait --dry-run`, 2],
  ]);
});

async function has(subscription: number, status: "failed" | "waiting" | "delivered"): Promise<boolean> {
  return (await served.evreg.deliveries.list({ subscription, status })).data.length === 1;
}

test("what failed, and what waits, is sent again without a time, as its subscription says", async () => {
  const wanted = { application: "billing", handler: receiver.url, max_retries: 0 };
  const ids: number[] = [];
  receiver.answer = () => ({ status: 500 });
  for (const [action, more] of [
    ["order.failed", {}],
    ["order.waiting", { max_retries: 1, retry_schedule: [3_600_000] }],
  ] as const) {
    await served.evreg.actions.create({ action, application: "shop", schemata: {} });
    const { data } = await served.evreg.subscriptions.create({
      ...wanted,
      subscription: action,
      action,
      ...more,
    });
    ids.push(data.rowid);
    await served.evreg.events.publish({ action, payload: RawJson.fromText("{}") });
  }
  const [failed, waiting] = ids as [number, number];
  await until(
    "both to have failed",
    async () => (await has(failed, "failed")) && (await has(waiting, "waiting")),
  );

  const { stdout, stderr } = await run(`subscriptions get ${failed}`);
  expect(stdout).toMatch(/^State +failing$/m);
  expect(stderr).toMatch(/^Last error: HTTP 500 \(delivery \d+\)\. See why: evreg deliveries get \d+$/m);
  expect(stderr).toContain(`Try its handler: evreg subscriptions test ${failed}\n`);
  const again = `subscriptions replay ${failed} --status failed`;
  expect(stderr).toContain(`Send again what failed: evreg ${again}\n`);
  expect((await run(`subscriptions get ${failed} --json`)).stderr).toBe("");

  receiver.answer = () => ({});
  const sent = await run([...again.split(" "), "--wait"]);
  expect(sent).toMatchObject({
    code: 0,
    stderr:
      "All are on their way, with all their retries. See what fails again: evreg deliveries --status failed\n",
  });
  const words = ["subscriptions", "replay", "billing/order.waiting", "--status", "waiting"];
  expect((await run(words)).stdout).toMatch(/^From +the first event$/m);
  await until(
    "both to be delivered",
    async () => (await has(failed, "delivered")) && (await has(waiting, "delivered")),
  );
});

test("what blocks an ordered subscription is shown, and can be skipped", async () => {
  const action = "order.blocked";
  await served.evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
  const wanted = { application: "billing", subscription: "blocked", action, handler: receiver.url };
  const { data: made } = await served.evreg.subscriptions.create({
    ...wanted,
    max_retries: 0,
    ordered: true,
    retry_schedule: [3_600_000],
  });
  receiver.answer = () => ({ status: 500 });
  await served.evreg.events.publish({ action, payload: RawJson.fromText("{}") });
  let delivery: number | null = null;
  await until("it to wait for a retry", async () => {
    delivery = (await served.evreg.subscriptions.get(made.rowid)).data.blocked_by;
    return delivery !== null;
  });
  receiver.answer = () => ({});
  const skip = `evreg deliveries skip ${delivery}`;
  const shown = await run(`subscriptions get ${made.rowid}`);
  expect(shown.stdout).toMatch(/^State +blocked$/m);
  expect(shown.stdout).toContain(
    `Blocked by     delivery ${delivery}, which is tried on; to go past it: ${skip}`,
  );
  const { data: event } = await served.evreg.events.publish({ action, payload: RawJson.fromText("{}") });
  const [second] = (await served.evreg.deliveries.list({ event: event.rowid })).data;
  const later = String(second!.rowid);
  const behind = await run(["deliveries", "get", later]);
  expect(behind.stderr).toBe(
    `Delivery ${later} waits behind delivery ${delivery}, which its subscription ${made.rowid}, an ordered one, is blocked by. See why: evreg deliveries get ${delivery}. Go past it: ${skip}\n`,
  );
  expect((await run(`deliveries get ${delivery}`)).stderr).toBe("");
  expect((await run(["deliveries", "skip", later])).stderr).toContain(
    "its subscription is ordered, and another delivery goes before it",
  );
  await served.evreg.subscriptions.update(made.rowid, { active: false });
  const paused = await run(`subscriptions get ${made.rowid}`);
  expect(paused.stdout).toContain(`delivery ${delivery}, which is held until it is active again; to go past`);
  const skipped = await run(skip.split(" ").slice(1));
  expect(skipped).toMatchObject({ code: 0, stderr: "" });
  expect(skipped.stdout).toMatch(/^Status +failed$/m);
  expect(await run(skip.split(" ").slice(1))).toMatchObject({ code: 5, stdout: "" });
  expect((await served.evreg.subscriptions.get(made.rowid)).data.blocked_by).toBeNull();
});

test("without a server a replay is recorded, and continues with the next server", async () => {
  const id = await subscribe("later");
  const before = receiver.requests.length;
  const started = await served.withoutServer(() => run(replay(id, "missed")));
  expect(started).toMatchObject({ code: 0 });
  expect(started.stderr).toContain("It begins with the next server on this data folder: evreg serve");
  await receiver.received(before + EVENTS);
});
