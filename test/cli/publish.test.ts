import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { RawJson } from "../../src/json/raw-json.ts";
import { useServed } from "./served.ts";
import { startCommand } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";

const served = useServed(async ({ evreg }) => {
  receiver = await startReceiver();
  const schemata = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  for (const action of ["plain", "wanted", "refused", "stuck", "paused", "many", "sifted"]) {
    await evreg.actions.create({ action, application: "shop", schemata });
  }
  receiver.answer = ({ path }) => {
    if (path.endsWith("/refused")) return { status: 500, body: "no\u001b[2J" };
    return path.endsWith("/stuck") ? "hang" : { status: 200 };
  };
  const strict = { type: "object", required: ["a", "b"], properties: { n: { minimum: 0 } } };
  await evreg.actions.create({ action: "strict", application: "shop", schemata: strict });
  for (const action of ["wanted", "refused", "stuck", "sifted"]) {
    const handler = `${receiver.url}/${action}`;
    const filter = action === "sifted" ? { properties: { id: { minimum: 100 } } } : null;
    await evreg.subscriptions.create({
      application: "billing",
      subscription: "s",
      action,
      handler,
      max_retries: 0,
      filter,
    });
  }
});
const { folder, data, run, json } = served;
let receiver: Receiver;

afterAll(() => receiver.close());

async function total(action: string): Promise<number> {
  return (await served.evreg.events.list({ action, limit: 1 })).meta.total;
}

const EXACT = '{"z": 1,\n "id":12345678901234567890, "1": 1.0, "é": "\\u00e9"}';

test("a payload is stored byte for byte, from an argument, a file or stdin", async () => {
  writeFileSync(join(folder, "payload.json"), `${EXACT}\n`);
  const published = await Promise.all([
    json<{ rowid: number }>(["publish", "plain", EXACT]),
    json<{ rowid: number }>("publish plain --file payload.json"),
    json<{ rowid: number }>("publish plain -", { input: `  ${EXACT}` }),
  ]);
  for (const { data: event } of published) {
    const answer = await fetch(`${served.server.url}/v1/events/${event.rowid}`);
    expect(await answer.text()).toContain(`"payload":${EXACT}`);
  }
  const [id] = published.map(({ data: event }) => String(event.rowid));
  const { stdout } = await run(["events", "get", id ?? "", "--json"]);
  expect(stdout).toContain(`"payload":${EXACT}`);
  expect(
    (await run(["events", "get", id ?? "", "--output", "jsonl"])).stdout.trimEnd().split("\n"),
  ).toHaveLength(1);
});

test("a refused publish reports why, and ends with the exit code for it", async () => {
  const [against, unknown, malformed, twice, list, word, three] = await Promise.all([
    run(["publish", "plain", '{"id": "seven"}']),
    run("publish no.such {}"),
    run(["publish", "plain", '{"id": 1,}']),
    run(["publish", "plain", '{"id": 1, "id": 2}', "--json"]),
    run("publish plain [1]"),
    run("publish plain not-json"),
    run(["publish", "strict", '{"n": -1}']),
  ]);
  expect(against).toMatchObject({ code: 1, stdout: "" });
  expect(against.stderr).toMatch(/^Error: .*id must be an integer\n {2}value: "seven"\n$/);
  expect(unknown).toMatchObject({ code: 3, stdout: "" });
  expect(unknown.stderr).toContain("no.such");
  expect(malformed).toMatchObject({ code: 1, stdout: "" });
  expect(malformed.stderr).toMatch(/line 1/);
  expect(twice).toMatchObject({ code: 1, stdout: "" });
  expect(JSON.parse(twice.stderr)).toMatchObject({ code: 400 });
  expect(malformed.stderr).toContain("typed in quotes");
  expect(list).toMatchObject({ code: 1, stdout: "" });
  expect(word).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("or read from a file with --file FILE."),
  });
  expect(three).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/: a is required\n {2}- b is required\n {2}- n must be at least 0: -1\n$/),
  });
});

test("an idempotency key makes a second publish safe, and another payload a conflict", async () => {
  const key = ["--idempotency-key", "order-7"];
  const first = await json<{ rowid: number }>(["publish", "plain", '{"id": 7}', ...key]);
  const again = await run(["publish", "plain", '{"id": 7}', ...key]);
  expect(again.code).toBe(0);
  expect(again.stderr).toContain(`stands for event ${first.data.rowid}`);
  expect(await run(["publish", "plain", '{"id": 8}', ...key])).toMatchObject({ code: 5, stdout: "" });
});

test("--wait ends with 0 when all was delivered or filtered, else with 1", async () => {
  const [delivered, failed, nowhere, document, filtered] = await Promise.all([
    run(["publish", "wanted", '{"id": 1}', "--wait"]),
    run(["publish", "refused", '{"id": 1}', "--wait"]),
    run(["publish", "plain", '{"id": 1}', "--wait"]),
    json<{ rowid: number }>(["publish", "wanted", '{"id": 2}', "--wait"]),
    run(["publish", "sifted", '{"id": 1}', "--wait"]),
  ]);
  expect(filtered).toMatchObject({ code: 0, stderr: "" });
  expect(filtered.stdout).toMatch(/billing\/s +filtered +0 +\S+Z +-/);
  expect((await json<unknown[]>("deliveries --status filtered")).data).toMatchObject([
    { action: "sifted", status: "filtered", attempt: 0 },
  ]);
  expect(delivered).toMatchObject({ code: 0, stderr: "" });
  expect(delivered.stdout).toMatch(/billing\/s +delivered +1/);
  expect(failed.code).toBe(1);
  expect(failed.stdout).toMatch(/failed +1 .*HTTP 500/);
  expect(failed.stderr).toMatch(
    /^Failed: 1 of 1 deliveries .*evreg deliveries get \d+\. .*evreg deliveries retry \d+$/m,
  );
  expect(nowhere).toMatchObject({ code: 0 });
  expect(nowhere.stderr).toContain("No delivery to show");
  expect(document.meta).toMatchObject({
    outcome: "delivered",
    deliveries: [{ event_id: document.data.rowid, status: "delivered" }],
  });

  const id = /^ +(\d+) +\d+ +refused/m.exec(failed.stdout)?.[1] ?? "";
  const shown = await run(["deliveries", "get", id]);
  expect(shown.stdout).toMatch(/1 +\S+Z +\d+(?: +(?:\d+|-)){3} +failed +500 +no\\e\[2J/);
  expect((await run("deliveries --status failed")).stdout).toContain("refused");
  expect(await run(["deliveries", "retry", id])).toMatchObject({ code: 0 });
  expect((await run("subscriptions --action refused")).stdout).toMatch(/refused +failing/);
});

test("a delivery retried while its subscription is paused is held, and the output says so", async () => {
  const { data: event } = await served.evreg.events.publish({
    action: "refused",
    payload: RawJson.fromText('{"id": 9}'),
  });
  const failed = async () =>
    (await served.evreg.deliveries.list({ event: event.rowid })).data.find(
      ({ status }) => status === "failed",
    );
  await until("the delivery fails", async () => (await failed()) !== undefined);
  const delivery = (await failed())!;
  await served.evreg.subscriptions.update(delivery.subscription_id, { active: false });
  const retried = await run(`deliveries retry ${delivery.rowid}`);
  expect(retried).toMatchObject({
    code: 0,
    stderr: `Delivery ${delivery.rowid} is held: it waits until subscription ${delivery.subscription_id} is active again: evreg subscriptions update ${delivery.subscription_id} --active\n`,
  });
  expect(retried.stdout).toMatch(/^Status +held$/m);
  await served.evreg.subscriptions.update(delivery.subscription_id, { active: true });
});

test("a refused address is reported with the reason and the setting that allows it", async () => {
  const names = { application: "billing", subscription: "itself", action: "plain" };
  const handler = `${served.server.url}/hook`;
  const { data: made } = await served.evreg.subscriptions.create({ ...names, handler, max_retries: 0 });
  await served.evreg.events.publish({ action: "plain", payload: RawJson.fromText('{"id": 1}') });
  const last = async () => (await served.evreg.deliveries.list({ subscription: made.rowid })).data[0];
  await until("it fails", async () => (await last())?.status === "failed");
  const get = ["deliveries", "get", String((await last())!.rowid)];
  const { stderr } = await run(get);
  expect(stderr).toBe(
    "address_refused: Deliveries to 127.0.0.1 are not allowed: it is this service itself.\n",
  );
  await served.evreg.subscriptions.delete(made.rowid);
});

test("--wait ends when only held deliveries remain, and prints how to resume them", async () => {
  const handler = `${receiver.url}/refused`;
  const names = { application: "billing", subscription: "s", action: "paused" };
  const { data: made } = await served.evreg.subscriptions.create({ ...names, handler, max_retries: 20 });
  const waited = run(["publish", "paused", '{"id": 1}', "--wait"]);
  const status = async () =>
    (await served.evreg.deliveries.list({ subscription: made.rowid })).data[0]?.status;
  await until("a retry waits", async () => (await status()) === "waiting");
  await served.evreg.subscriptions.update(made.rowid, { active: false });
  const { code, stderr } = await waited;
  expect(code).toBe(1);
  expect(stderr).toContain(
    `The rest is held until its subscription is active again: evreg subscriptions update ${made.rowid} --active. `,
  );
});

test("--wait ends at its time limit, and with 130 at an interruption; the event is published either way", async () => {
  const before = await total("stuck");
  const late = await run(["publish", "stuck", '{"id": 1}', "--wait", "--timeout", "0"]);
  expect(late.code).toBe(1);
  expect(late.stderr).toMatch(
    /^Timed out after 0 s \(.* so far\)\. A running server goes on with them\. .* evreg events deliveries \d+$/m,
  );
  expect(late.stderr).not.toContain("Failed");
  const outcomes = await Promise.all([
    run(["publish", "stuck", '{"id": 1}', "--wait", "--timeout", "0", "--json"]),
    run(["publish", "refused", '{"id": 1}', "--wait", "--json"]),
    run(["publish", "plain", '{"id": 1}', "--wait", "--json"]),
  ]);
  expect(
    outcomes.map(({ code, stdout }) => [
      code,
      (JSON.parse(stdout) as { meta: { outcome: string } }).meta.outcome,
    ]),
  ).toEqual([
    [1, "timeout"],
    [1, "failed"],
    [0, "none"],
  ]);

  const words = ["publish", "stuck", '{"id": 2}', "--wait"];
  const waiting = startCommand(words, { env: { EVREG_DATA: data } });
  // Its delivery under way: the command is waiting.
  await receiver.received(receiver.requests.filter(({ path }) => path.endsWith("/stuck")).length + 1);
  while ((await total("stuck")) < before + 3) await new Promise((resolve) => setImmediate(resolve));
  waiting.child.kill("SIGINT");
  const { code, stderr } = await waiting.ended;
  expect(code).toBe(130);
  expect(stderr).toMatch(
    /Interrupted\. Event (\d+) is published all the same\. See how it goes on: evreg events deliveries \1\n$/,
  );
});

test("--all lists every record, one per line, and a reader may stop early", async () => {
  const lines = Array.from({ length: 1_203 }, (_, at) => `{"action":"many","payload":{"id":${at}}}`);
  const published = await run("publish --batch - --output jsonl", {
    input: `${lines.join("\n")}\n`,
  });
  expect(published).toMatchObject({ code: 0, stderr: "" });
  expect(published.stdout.trimEnd().split("\n")).toHaveLength(1_203);

  const walked = await run("events --action many --all --order asc");
  const ids = walked.stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { payload: { id: number } }).payload.id);
  expect(ids).toEqual(lines.map((_, at) => at));

  const { child, ended } = startCommand(["events", "--all", "--data", data]);
  child.stdout.once("data", () => child.stdout.destroy());
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
});

test("--wait does not wait for what a consumer has not taken, and says so", async () => {
  const names = { application: "billing", subscription: "puller" };
  for (const action of ["wanted", "plain"]) {
    await served.evreg.subscriptions.create({ ...names, action, mode: "pull" });
  }
  const both = await run(["publish", "wanted", '{"id": 1}', "--wait", "--json"]);
  expect([both.code, both.stderr]).toEqual([0, ""]);
  expect(JSON.parse(both.stdout)).toMatchObject({ meta: { outcome: "delivered" } });
  const alone = await run(["publish", "plain", '{"id": 1}', "--wait"]);
  expect(alone.code).toBe(0);
  expect(alone.stderr).toContain("Not waited for: billing/puller. What waits there waits for a consumer.");
  const { data: list } = await served.evreg.subscriptions.list({ application: "billing" });
  for (const { rowid, mode } of list) if (mode === "pull") await served.evreg.subscriptions.delete(rowid);
});
