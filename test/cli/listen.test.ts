import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventLines } from "../../src/cli/listen/report.ts";
import { execute } from "../../src/cli/listen/execute.ts";
import { localUrl } from "../../src/cli/listen/forward.ts";
import { listen as startListening, type ListenOptions } from "../../src/cli/listen/listen.ts";
import { ATTEMPT_ERROR_WORDS } from "../../src/domain/words/attempts.ts";
import type { FinishedPull, PulledDelivery } from "../../src/domain/pull.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { verify } from "../../src/sdk/webhook.ts";
import { startCommand } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { useServed } from "./served.ts";

const served = useServed(({ evreg }) =>
  evreg.actions.create({ action: "order.created", application: "shop", schemata: { type: "object" } }),
);
let receiver: Receiver;
let made = 0;
let name = "";

beforeAll(async () => {
  receiver = await startReceiver();
});
afterAll(() => receiver.close());
beforeEach(() => {
  made += 1;
  name = `listener-${made}`;
});

async function publish(text = '{"id": 1, "b":1.0}'): Promise<number> {
  const event = { action: "order.created", payload: RawJson.fromText(text) };
  return (await served.evreg.events.publish(event)).data.rowid;
}

/** Listens from the first event to be on, for so many. */
function listen(max: number, ...words: string[]) {
  const flags = ["--action", "order.created", "--subscription", name, "--max", String(max)];
  return served.run(["listen", ...flags, ...words]);
}

/** Listens to the one subscription within this process. */
async function listenHere(id: number, options: Pick<ListenOptions, "attempt" | "report" | "signal">) {
  const { data: subscription } = await served.evreg.subscriptions.get(id);
  const usual = { concurrency: 1, leaseMs: 600_000, signAs: undefined, graceMs: 0, max: undefined };
  return startListening(served.evreg, [subscription], { ...usual, ...options });
}

/** The subscription that listening makes, before anything is published. */
async function subscribed(extra: object = {}): Promise<number> {
  const names = { application: "listen", subscription: name, action: "order.created", mode: "pull" } as const;
  return (await served.evreg.subscriptions.create({ ...names, ...extra })).data.rowid;
}

test("events are forwarded as a handler gets them, and the answer becomes the attempt's result", async () => {
  const before = receiver.requests.length;
  const id = await subscribed({ retry_schedule: [0] });
  const { secret } = (await served.evreg.subscriptions.rotateSecret(id, { overlap_ms: 0 })).data;
  const event = await publish();
  receiver.script({ status: 500, body: "not yet" }, { status: 202 });
  const { code, stdout, stderr } = await listen(2, "--forward-to", receiver.url);
  expect([code, stderr]).toEqual([0, expect.stringContaining(`Forwarding to ${receiver.url}`)]);
  const lines = stdout.trimEnd().split("\n");
  expect(lines).toEqual([
    expect.stringMatching(
      new RegExp(`^\\d\\d:\\d\\d:\\d\\d  order\\.created +#${event} +\\d+ ms  500, retried$`),
    ),
    expect.stringMatching(/ ms +202, attempt 2$/),
  ]);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  const [first] = receiver.requests.slice(before);
  expect(first!.body.toString()).toContain('"payload":{"id": 1, "b":1.0},');
  expect(verify(first!.headers, first!.body, secret)).toMatchObject({ event_id: String(event) });
  const [delivery] = (await served.evreg.deliveries.list({ subscription: id })).data;
  expect((await served.evreg.deliveries.get(delivery!.rowid)).data.attempts).toMatchObject([
    { outcome: "failed", status_code: 500, response: "not yet", consumer: expect.stringContaining("@") },
    { outcome: "delivered", status_code: 202 },
  ]);
});

test("a subscription is made at the first use, expires, and its secret is shown once", async () => {
  const listening = listen(1, "--print");
  const { subscriptions } = served.evreg;
  const isThere = async (): Promise<boolean> =>
    (await subscriptions.list()).data.some(({ subscription }) => subscription === name);
  while (!(await isThere())) continue;
  await publish('{"printed": true}');
  const { stdout, stderr } = await listening;
  expect(stdout.split("\n")[1]).toBe('{"printed": true}');
  expect(stderr).toMatch(/Made the subscription listen\/listener-\d+ to order\.created \(\d+\)\..+whsec_/);
  const found = (await subscriptions.list()).data.find(({ subscription }) => subscription === name);
  expect(found).toMatchObject({ application: "listen", mode: "pull", expires_after_ms: 86_400_000 });
  await publish();
  expect((await listen(1)).stderr).not.toContain("whsec_");
});

test("a command gets the payload, and its exit code says what became of it", async () => {
  const id = await subscribed({ max_retries: 0 });
  const event = await publish();
  const script = `const fs = require("fs"), { EVENT_ID, EVENT_ACTION, HTTP_WEBHOOK_ID, HTTP_AUTHORIZATION } = process.env;
    fs.writeFileSync("got.json", JSON.stringify([fs.readFileSync(0, "utf8"), EVENT_ID, EVENT_ACTION, HTTP_WEBHOOK_ID, HTTP_AUTHORIZATION]));
    process.exit(3);`;
  writeFileSync(join(served.folder, "script.cjs"), script);
  const file = JSON.stringify(`${served.folder}/script.cjs`);
  const out = JSON.stringify(served.folder);
  const { stdout } = await listen(1, "--exec", `cd ${out} && ${JSON.stringify(process.execPath)} ${file}`);
  expect(stdout).toMatch(/ ms {2}exit code 3, given up\n$/);
  expect(JSON.parse(readFileSync(join(served.folder, "got.json"), "utf8"))).toEqual([
    '{"id": 1, "b":1.0}',
    String(event),
    "order.created",
    `evt_${event}_${id}`,
    null,
  ]);
});

test("SIGTERM ends it in order: what is under way here is finished and reported", async () => {
  const id = await subscribed();
  await publish();
  const go = join(served.folder, "go");
  const begun = join(served.folder, "begun");
  const script = `touch '${begun}'; while [ ! -e '${go}' ]; do sleep 0.01; done`;
  const words = ["listen", "--action", "order.created", "--subscription", name, "--exec", script];
  const { child, ended } = startCommand([...words, "--data", served.data]);
  await until("the work", () => existsSync(begun));
  child.kill("SIGTERM");
  writeFileSync(go, "");
  expect(await ended).toMatchObject({ code: 0 });
  const [delivery] = (await served.evreg.deliveries.list({ subscription: id })).data;
  expect(delivery).toMatchObject({ status: "delivered", attempt: 1 });
});

test("what failed here is retried by the server, with the reason, and given up with what to type", async () => {
  const id = await subscribed({ max_retries: 0 });
  await publish();
  receiver.script("reset");
  const { stdout, stderr } = await listen(1, "--forward-to", receiver.url);
  expect(stdout.trimEnd().endsWith(` ms  ${ATTEMPT_ERROR_WORDS.connection_reset}, given up`)).toBe(true);
  expect(stderr).toContain(`is sent again with: evreg subscriptions replay ${id} --status failed`);
});

test("a status that HTTP does not have is a failure as any other", async () => {
  const id = await subscribed({ max_retries: 0 });
  await publish();
  receiver.script({ status: 999 });
  const { stdout } = await listen(1, "--forward-to", receiver.url);
  expect(stdout.trimEnd().endsWith(` ms  ${ATTEMPT_ERROR_WORDS.protocol_error}, given up`)).toBe(true);
  const [delivery] = (await served.evreg.deliveries.list({ subscription: id })).data;
  expect(delivery).toMatchObject({ status: "failed", attempt: 1, last_error: "protocol_error" });
});

test("a program that is down has the many retries of a subscription that listening made", async () => {
  const listening = listen(1, "--forward-to", "9", "--output", "jsonl");
  const { subscriptions } = served.evreg;
  const own = async () => (await subscriptions.list()).data.find(({ subscription }) => subscription === name);
  await until("the subscription", async () => (await own()) !== undefined);
  await publish();
  const { stdout } = await listening;
  expect(JSON.parse(stdout)).toMatchObject({
    error_code: "connection_refused",
    delivery_status: expect.stringMatching(/^(?:pending|waiting)$/),
  });
  expect(await own()).toMatchObject({ max_retries: 20 });
});

test("what is under way after the grace goes back at once", async () => {
  const id = await subscribed();
  await publish();
  const ending = new AbortController();
  const waiting = execute("sleep 600");
  await listenHere(id, {
    attempt: (delivery, signal) => {
      const attempted = waiting(delivery, signal);
      ending.abort();
      return attempted;
    },
    report: () => Promise.reject(new Error("nothing is to be reported")),
    signal: ending.signal,
  });
  const { data } = await served.evreg.deliveries.list({ subscription: id });
  expect(data).toMatchObject([{ status: "pending", attempt: 0 }]);
});

test("a command that takes no notice of the end is killed, and its delivery goes back", async () => {
  const id = await subscribed();
  await publish();
  const file = join(served.folder, `${name}.pid`);
  const pid = (): number => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
  const ending = new AbortController();
  const listening = listenHere(id, {
    attempt: execute(`trap '' TERM; echo $$ > '${file}'; exec sleep 600`),
    report: () => Promise.reject(new Error("nothing is to be reported")),
    signal: ending.signal,
  });
  await until("the command", () => pid() > 0);
  ending.abort();
  await listening;
  await until("its end", () => !existsSync(`/proc/${pid()}`));
  const { data } = await served.evreg.deliveries.list({ subscription: id });
  expect(data).toMatchObject([{ status: "pending", attempt: 0 }]);
});

test("after SIGINT a program that never answers has five seconds, and the delivery goes back", async () => {
  const id = await subscribed();
  await publish();
  const program = createServer();
  await once(program.listen(0, "127.0.0.1"), "listening");
  try {
    const asked = once(program, "request");
    const { port } = program.address() as AddressInfo;
    const words = ["--subscription", name, "--forward-to", `${port}/hang`, "--data", served.data];
    const { child, ended } = startCommand(["listen", "--action", "order.created", ...words]);
    await asked;
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 0 });
    const { data } = await served.evreg.deliveries.list({ subscription: id });
    expect(data).toMatchObject([{ status: "pending", attempt: 0 }]);
  } finally {
    program.closeAllConnections();
    program.close();
  }
});

test("a fault while an event is handled ends the listener, and the delivery goes back", async () => {
  const id = await subscribed();
  await publish();
  const listening = listenHere(id, {
    attempt: () => Promise.reject(new Error("a fault")),
    report: () => Promise.resolve(),
    signal: new AbortController().signal,
  });
  await expect(listening).rejects.toThrow("a fault");
  const { data } = await served.evreg.deliveries.list({ subscription: id });
  expect(data).toMatchObject([{ status: "pending", attempt: 0 }]);
});

test("a program that answers 401 is said to know another secret, once, and gets the signature that it knows", async () => {
  const handler = { application: "billing", subscription: name, action: "order.created" };
  const { data: known } = await served.evreg.subscriptions.create({
    ...handler,
    handler: receiver.url,
    active: false,
  });
  await subscribed({ retry_schedule: [0] });
  await publish();
  receiver.script({ status: 401 }, { status: 401 });
  const { stderr } = await listen(2, "--forward-to", receiver.url);
  expect(stderr.match(/The program answers 401\./g)).toHaveLength(1);
  expect(stderr).toContain("add --secret-of APPLICATION/SUBSCRIPTION");
  const before = receiver.requests.length;
  await publish();
  const secretOf = await listen(1, "--forward-to", receiver.url, "--secret-of", `billing/${name}`);
  expect(secretOf.code).toBe(0);
  expect(secretOf.stderr).not.toContain("whsec_");
  const [sent] = receiver.requests.slice(before);
  expect(verify(sent!.headers, sent!.body, known.secret)).toMatchObject({ action: "order.created" });
});

test("a subscription made with --secret-of says whose secret signs, and not its own", async () => {
  const names = { application: "billing", subscription: name, action: "order.created" };
  await served.evreg.subscriptions.create({ ...names, handler: receiver.url, active: false });
  await publish();
  const { stderr } = await listen(1, "--since", "1h", "--secret-of", `billing/${name}`);
  expect(stderr).toContain(`Its deliveries are signed with the secret of billing/${name} to order.created (`);
  expect(stderr).not.toContain("whsec_");
});

test("a secret that cannot be used is refused before a subscription is made", async () => {
  const refused = await listen(1, "--secret-of", "nobody/none");
  expect(refused).toMatchObject({ code: 3, stderr: expect.not.stringContaining("Made the") });
  const { data } = await served.evreg.subscriptions.list();
  expect(data.some(({ subscription }) => subscription === name)).toBe(false);
});

test("programs read a line of JSON for each", async () => {
  await subscribed();
  const event = await publish('{"n":12345678901234567890}');
  const { stdout } = await listen(1, "--output", "jsonl");
  expect(stdout).toContain('"payload":{"n":12345678901234567890}');
  expect(JSON.parse(stdout)).toMatchObject({
    event_id: event,
    outcome: "delivered",
    stored: true,
    attempt: 1,
  });
});

test("another listener of the same name is told", async () => {
  const id = await subscribed();
  const leaving = new AbortController();
  const { subscriptions } = served.evreg;
  const other = subscriptions.claim(id, { wait_ms: 20_000 }, leaving.signal).catch(() => undefined);
  while ((await subscriptions.get(id)).meta?.consumers !== 1) continue;
  const listening = listen(1);
  while ((await subscriptions.get(id)).meta?.consumers !== 2) continue;
  leaving.abort();
  await other;
  await publish();
  expect((await listening).stderr).toMatch(
    /Another listener takes a part of these events: .+--subscription, or see all events with: evreg events tail/,
  );
  await publish();
  expect((await listen(1)).stderr).not.toContain("Another listener");
});

test("a paused subscription is named, with what resumes it", async () => {
  const { subscriptions } = served.evreg;
  const id = await subscribed({ active: false });
  const listening = listen(1);
  while ((await subscriptions.get(id)).meta?.consumers !== 1) continue;
  await subscriptions.update(id, { active: true });
  await publish();
  expect((await listening).stderr).toContain(` is paused: evreg subscriptions update ${id} --active`);
});

test("--since takes a time", async () => {
  const { code, stderr } = await listen(1, "--since", "yesterday");
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/--since: must be an ISO 8601 .*a date.*1h or 2d/s),
  ]);
});

test("--since begins with what was published before it was made", async () => {
  const event = await publish('{"early":1}');
  const { stdout } = await listen(1, "--since", "1h", "--ordered", "--output", "jsonl");
  expect((JSON.parse(stdout) as { event_id: number }).event_id).toBeLessThanOrEqual(event);
});

test.each([
  ["3000", "http://localhost:3000/"],
  [":3000/a", "http://localhost:3000/a"],
  ["7710/hooks", "http://localhost:7710/hooks"],
  ["7710?a=/b", "http://localhost:7710/?a=/b"],
  ["localhost:3000/hooks?a=b", "http://localhost:3000/hooks?a=b"],
  ["box:3000", "http://box:3000/"],
  ["[::1]:3000", "http://[::1]:3000/"],
  ["box.lan/hooks", "http://box.lan/hooks"],
  ["http://app/hooks", "http://app/hooks"],
  ["app/hooks", "http://app/hooks"],
  ["https://127.0.0.1:8443/x", "https://127.0.0.1:8443/x"],
])("the address %s is %s", (text, url) => {
  expect(localUrl(text).href).toBe(url);
});

test.each(
  [
    "",
    "ftp://a",
    "http://",
    "http://user:word@host/",
    "7710:/x",
    "http://7710/hooks",
    "99999:80",
    "0x7f000001",
  ].concat(["0", "0/x", "70000", "localhost:0"]),
)("the address %j is refused", (text) => {
  expect(() => localUrl(text)).toThrow("takes an address such as");
});

test("a number of events below one is refused", async () => {
  const { code, stderr } = await listen(0);
  expect([code, stderr]).toEqual([2, expect.stringContaining("--max: takes a number from 1, not 0.")]);
});

test("a line does nothing to a terminal, and fits it", () => {
  const delivery = {
    lease: "",
    delivery_id: 1,
    event_id: 123_456,
    action: "a".repeat(60),
    attempt: 3,
    headers: {},
    body: "{}",
    expires_at: "",
  } satisfies PulledDelivery;
  const result = { isDelivered: false, reason: `\u001b[2J${"x".repeat(200)}` };
  const finished = { outcome: "stored", status: "waiting" } as FinishedPull;
  const line = eventLines(80)(
    { delivery, result, durationMs: 12, finished },
    Date.parse("2026-01-01T00:00:00Z"),
  );
  expect(line).not.toContain("\u001b[2J");
  expect(line.trimEnd().length).toBeLessThanOrEqual(80);
});
