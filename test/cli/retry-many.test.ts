import { afterAll, expect, test } from "vitest";
import type { Replay, ReplayCount } from "../../src/domain/replay.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { useServed } from "./served.ts";

const EVENTS = 5;
let receiver: Receiver;

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  receiver.answer = () => ({ status: 500 });
  for (const action of ["order.created", "order.paid"]) {
    await evreg.actions.create({ action, application: "shop", schemata: { type: "object" } });
    const names = { application: "billing", subscription: "invoices", action };
    await evreg.subscriptions.create({ ...names, handler: receiver.url, max_retries: 0 });
    const event = { action, payload: RawJson.fromText("{}") };
    await evreg.events.publishBatch(Array.from({ length: EVENTS }, () => event));
  }
  await until("all to have failed", async () => {
    const { data } = await evreg.deliveries.list({ status: "failed" });
    return data.length === 2 * EVENTS;
  });
});
const { run, json } = served;
afterAll(() => receiver.close());

const MANY = ["deliveries", "retry", "--status", "failed"];
const CREATED = "billing/invoices#order.created";

test("those that failed are counted by subscription, and none is sent", async () => {
  const all = await json<readonly ReplayCount[]>([...MANY, "--dry-run"]);
  expect(all.data.map(({ action, total }) => [action, total])).toEqual([
    ["order.created", EVENTS],
    ["order.paid", EVENTS],
  ]);
  const { stdout } = await run([...MANY, "--action", "order.paid", "--since", "1h", "--dry-run"]);
  expect(stdout).toMatch(/^SUBSCRIPTION +ACTION +DELIVERIES\n2 billing\/invoices +order\.paid +5\n$/);
  const none = await run([...MANY, "--subscription", CREATED, "--from", "2020-01-01", "--to", "2020-01-02"]);
  expect(none).toEqual({ code: 0, stdout: "", stderr: "No delivery that failed matches.\n" });
});

test("a subscription that fails is shown with its last error and what to type next", async () => {
  const { stdout, stderr } = await run(["subscriptions", "get", CREATED]);
  expect(stdout).toMatch(/^State +failing$/m);
  expect(stderr).toMatch(/^Last error: HTTP 500 \(delivery \d+\)\. See why: evreg deliveries get \d+$/m);
  expect(stderr).toContain("Try its handler: evreg subscriptions test 1\n");
  expect(stderr).toContain("evreg deliveries retry --status failed --subscription 1\n");
  expect((await run(["subscriptions", "get", CREATED, "--json"])).stderr).toBe("");
});

test("without a terminal they are sent only with --yes", async () => {
  const refused = await run(MANY);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain(
    "This sends 10 deliveries to 2 subscriptions again, and there is no terminal to ask at; say so with --yes.",
  );
  expect((await served.evreg.replays.list()).data).toEqual([]);
});

test("those of a subscription are sent again by a replay, which can be followed", async () => {
  receiver.answer = () => ({});
  const before = receiver.requests.length;
  const words = [...MANY, "--subscription", CREATED, "--since", "2d", "--yes", "--wait"];
  const { data } = await json<readonly Replay[]>(words);
  expect(data).toMatchObject([{ selection: "failed", status: "done", total: EVENTS, queued: EVENTS }]);
  await receiver.received(before + EVENTS);
  await until("these to be delivered", async () => {
    const failed = await served.evreg.deliveries.list({ status: "failed" });
    return failed.data.length === EVENTS;
  });
});

test("--wait says that what is on its way may fail again", async () => {
  receiver.answer = () => ({ status: 500 });
  const { code, stdout, stderr } = await run([...MANY, "--action", "order.paid", "--yes", "--wait"]);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr:
      "All are on their way, with all their retries. See what fails again: evreg deliveries --status failed\n",
  });
  expect(stdout).toMatch(/ had failed +done +5 +5 /);
  await until("these to have failed again", async () => {
    const failed = await served.evreg.deliveries.list({ status: "failed" });
    return failed.data.length === EVENTS;
  });
});

test("one that cannot begin holds up no other, and is told", async () => {
  const [first, second] = [1, 2];
  receiver.answer = () => ({ status: 500 });
  for (const id of [first, second]) {
    const replay = await served.evreg.replays.start(id, { from: "2020-01-01T00:00:00Z", status: "all" });
    await until("the replay to be done", async () => {
      return (await served.evreg.replays.get(replay.data.rowid)).data.status === "done";
    });
  }
  await until("all to have failed again", async () => {
    return (await served.evreg.deliveries.list({ status: "failed" })).data.length === 2 * EVENTS;
  });
  await served.evreg.subscriptions.update(first, { active: false });
  const { data: busy } = await served.evreg.replays.start(first, {
    from: "2020-01-01T00:00:00Z",
    status: "failed",
  });
  const outcome = await run([...MANY, "--yes"]);
  expect(outcome.code).toBe(7);
  expect(outcome.stdout).toContain("2 billing/invoices");
  expect(outcome.stderr).toContain(`Replay ${busy.rowid} of subscription ${first} still runs`);
});

test("after the handler was mended, all that wait for an hour are sent now", async () => {
  receiver.answer = () => ({ status: 500 });
  await served.evreg.actions.create({ action: "order.shipped", application: "shop", schemata: {} });
  const { data: made } = await served.evreg.subscriptions.create({
    application: "billing",
    subscription: "slow",
    action: "order.shipped",
    handler: receiver.url,
    retry_schedule: [3_600_000],
  });
  const event = { action: "order.shipped", payload: RawJson.fromText("{}") };
  await served.evreg.events.publishBatch(Array.from({ length: EVENTS }, () => event));
  const waiting = async () =>
    (await served.evreg.deliveries.list({ subscription: made.rowid, status: "waiting" })).data.length;
  await until("all to wait", async () => (await waiting()) === EVENTS);
  receiver.answer = () => ({});
  const words = ["deliveries", "retry", "--status", "waiting"];
  const refused = await run(words);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain("This sends 5 deliveries to billing/slow now, and there is no terminal");
  const { data } = await json<readonly Replay[]>([...words, "--yes", "--wait"]);
  expect(data).toMatchObject([{ selection: "waiting", status: "done", total: EVENTS, queued: EVENTS }]);
  await until("all to be delivered", async () => {
    const delivered = { subscription: made.rowid, status: "delivered" } as const;
    return (await served.evreg.deliveries.list(delivered)).data.length === EVENTS;
  });
  expect(await run(words)).toEqual({ code: 0, stdout: "", stderr: "No delivery that waits matches.\n" });
});

test.each([
  [["deliveries", "retry"], "Give the ID of a delivery, or --status failed or waiting"],
  [[...MANY, "7"], "Give the ID of a delivery or --status, not both."],
  [["deliveries", "retry", "7", "--since", "1h"], "are only for use with --status."],
  [["deliveries", "retry", "7", "--yes"], "--yes is only for use with --status."],
  [["deliveries", "retry", "--status", "pending"], "--status: must be one of failed, waiting; not"],
])("%j is refused as usage", async (words, told) => {
  const outcome = await run(words);
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toContain(told);
});
