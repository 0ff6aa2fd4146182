import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eventLine, listen as startListening, type ListenOptions } from "../../src/cli/listen/listen.ts";
import { execute, localUrl } from "../../src/cli/listen/attempts.ts";
import type { Delivery } from "../../src/domain/delivery.ts";
import { ATTEMPT_ERROR_WORDS } from "../../src/domain/words/attempts.ts";
import type { FinishedPull, PulledDelivery } from "../../src/domain/pull.ts";
import type { NewSubscription, Subscription } from "../../src/domain/subscription.ts";
import { type Outcome, startCommand } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { publish as publishAt, register, subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";
import { until } from "../support/until.ts";

const served = useServed(({ evreg }) => register(evreg, "order.created"));
const { at, read, write } = served;
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
  return (await publishAt(served.evreg, "order.created", text)).rowid;
}

const named = () => ["--action", "order.created", "--subscription", name];

/** Listens until it has reported so many events. */
async function listen(count: number, ...words: string[]): Promise<Outcome> {
  const { child, soFar, ended } = startListener(...words);
  const hasReported = () => (soFar().stdout.match(REPORTED) ?? []).length >= count;
  await until(`${count} reported`, () => hasReported() || child.exitCode !== null);
  child.kill("SIGTERM");
  return ended;
}

/** How a line about an event begins, for people and for programs. */
const REPORTED = /^(?:\d\d:\d\d:\d\d {2}|\{"time":)/gm;

/** Listens in a process of its own. */
function startListener(...words: string[]) {
  return startCommand(["listen", ...named(), ...words, "--data", served.data]);
}

const report = () => Promise.reject(new Error("nothing is to be reported"));

/** Listens to the one subscription within this process. */
async function listenHere(id: number, options: Pick<ListenOptions, "attempt" | "signal">) {
  const { data: subscription } = await served.evreg.subscriptions.get(id);
  return startListening(served.evreg, [subscription], { graceMs: 0, report, ...options });
}

/** The subscription that listening makes, before anything is published. */
async function subscribed(more: Partial<NewSubscription> = {}): Promise<number> {
  return (await subscribe(served.evreg, name, { application: "listen", mode: "pull", ...more })).rowid;
}

/** The subscription that listening has made, if it has. */
async function own(): Promise<Subscription | undefined> {
  const { data } = await served.evreg.subscriptions.list();
  return data.find(({ subscription, application }) => subscription === name && application === "listen");
}

async function deliveryOf(subscription: number): Promise<Delivery> {
  return (await served.evreg.deliveries.list({ subscription })).data[0]!;
}

/** Waits until so many consumers wait for deliveries. */
async function consumers(id: number, count: number): Promise<void> {
  while ((await served.evreg.subscriptions.get(id)).meta?.consumers !== count) continue;
}

const WENT_BACK = { status: "pending", attempt: 0 };

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
  expect(new Webhook(secret).verify(first!.body, first!.headers)).toMatchObject({ event_id: String(event) });
  const { rowid } = await deliveryOf(id);
  expect((await served.evreg.deliveries.get(rowid)).data.attempts).toMatchObject([
    { outcome: "failed", status_code: 500, response: "not yet", consumer: expect.stringContaining("@") },
    { outcome: "delivered", status_code: 202 },
  ]);
});

test("a subscription is made at the first use, expires, and its secret is shown once", async () => {
  const listening = listen(1, "--print");
  while ((await own()) === undefined) continue;
  await publish('{"printed": true}');
  const { stdout, stderr } = await listening;
  expect(stdout.split("\n")[1]).toBe('{"printed": true}');
  expect(stderr).toMatch(/Made the subscription listen\/listener-\d+ to order\.created \(\d+\)\..+whsec_/);
  expect(await own()).toMatchObject({ mode: "pull", expires_after_ms: 86_400_000 });
  await publish();
  expect((await listen(1)).stderr).not.toContain("whsec_");
});

test("a command gets the payload, and its exit code says what became of it", async () => {
  const id = await subscribed({ max_retries: 0 });
  const event = await publish();
  const script = `const fs = require("fs"), { EVENT_ID, EVENT_ACTION, HTTP_WEBHOOK_ID, HTTP_AUTHORIZATION } = process.env;
    fs.writeFileSync("got.json", JSON.stringify([fs.readFileSync(0, "utf8"), EVENT_ID, EVENT_ACTION, HTTP_WEBHOOK_ID, HTTP_AUTHORIZATION]));
    process.exit(3);`;
  write("script.cjs", script);
  const { stdout } = await listen(1, "--exec", `cd '${served.folder}' && '${process.execPath}' script.cjs`);
  expect(stdout).toMatch(/ ms {2}exit code 3, given up\n$/);
  expect(JSON.parse(read("got.json"))).toEqual([
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
  const script = `touch '${at("begun")}'; while [ ! -e '${at("go")}' ]; do sleep 0.01; done`;
  const { child, ended } = startListener("--exec", script);
  await until("the work", () => existsSync(at("begun")));
  child.kill("SIGTERM");
  write("go", "");
  expect(await ended).toMatchObject({ code: 0 });
  expect(await deliveryOf(id)).toMatchObject({ status: "delivered", attempt: 1 });
});

test.each([
  ["a connection that is cut", "connection_reset", "reset"],
  ["a status that HTTP does not have", "protocol_error", { status: 999 }],
] as const)("%s is a failed attempt, which says why, and what sends it again", async (_, error, answer) => {
  const id = await subscribed({ max_retries: 0 });
  await publish();
  receiver.script(answer);
  const { stdout, stderr } = await listen(1, "--forward-to", receiver.url);
  expect(stdout.trimEnd().endsWith(` ms  ${ATTEMPT_ERROR_WORDS[error]}, given up`)).toBe(true);
  expect(stderr).toContain(`is sent again with: evreg subscriptions replay ${id} --status failed`);
  expect(await deliveryOf(id)).toMatchObject({ status: "failed", attempt: 1, last_error: error });
});

test("a program that is down has the many retries of a subscription that listening made", async () => {
  const listening = listen(1, "--forward-to", "9", "--output", "jsonl");
  await until("the subscription", async () => (await own()) !== undefined);
  await publish();
  const { stdout } = await listening;
  // It may be tried again before the listener ends.
  expect(JSON.parse(stdout.split("\n")[0]!)).toMatchObject({
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
    signal: ending.signal,
  });
  expect(await deliveryOf(id)).toMatchObject(WENT_BACK);
});

test("a command that takes no notice of the end is killed, and its delivery goes back", async () => {
  const id = await subscribed();
  await publish();
  const file = `${name}.pid`;
  const pid = (): number => (existsSync(at(file)) ? Number(read(file)) : 0);
  const ending = new AbortController();
  const listening = listenHere(id, {
    attempt: execute(`trap '' TERM; echo $$ > '${at(file)}'; exec sleep 600`),
    signal: ending.signal,
  });
  await until("the command", () => pid() > 0);
  ending.abort();
  await listening;
  await until("its end", () => !existsSync(`/proc/${pid()}`));
  expect(await deliveryOf(id)).toMatchObject(WENT_BACK);
});

test("after SIGINT a program that never answers has five seconds, and the delivery goes back", async () => {
  const id = await subscribed();
  await publish();
  const program = createServer();
  await once(program.listen(0, "127.0.0.1"), "listening");
  try {
    const asked = once(program, "request");
    const { port } = program.address() as AddressInfo;
    const { child, ended } = startListener("--forward-to", `${port}/hang`);
    await asked;
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 0 });
    expect(await deliveryOf(id)).toMatchObject(WENT_BACK);
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
    signal: new AbortController().signal,
  });
  await expect(listening).rejects.toThrow("a fault");
  expect(await deliveryOf(id)).toMatchObject(WENT_BACK);
});

test("a program that answers 401 is said to know another secret, once", async () => {
  await subscribed({ retry_schedule: [0] });
  await publish();
  receiver.script({ status: 401 }, { status: 401 });
  const { stderr } = await listen(2, "--forward-to", receiver.url);
  expect(stderr.match(/The program answers 401\./g)).toHaveLength(1);
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
  const claim = { wait_ms: 20_000 };
  const other = served.evreg.subscriptions.claim(id, claim, leaving.signal).catch(() => undefined);
  await consumers(id, 1);
  const listening = listen(1);
  await consumers(id, 2);
  leaving.abort();
  await other;
  await publish();
  expect((await listening).stderr).toMatch(
    /Another listener takes a part of these events: .+--subscription, or see all events with: evreg events tail/,
  );
  await publish();
  expect((await listen(1)).stderr).not.toContain("Another listener");
});

test("a subscription that is named and there is taken from as it is, without its action", async () => {
  const id = await subscribed({ ordered: true });
  await publish();
  const { child, soFar, ended } = startCommand(["listen", "--subscription", name, "--data", served.data]);
  await until("one reported", () => soFar().stdout.match(REPORTED) !== null || child.exitCode !== null);
  child.kill("SIGTERM");
  const { stderr } = await ended;
  expect(stderr).toContain(`Listening: listen/${name} to order.created (${id}). Showing each.`);
  expect(stderr).not.toContain("Made the subscription");
});

test("a paused subscription is named, with what resumes it", async () => {
  const id = await subscribed({ active: false });
  const listening = listen(1);
  await consumers(id, 1);
  await served.evreg.subscriptions.update(id, { active: true });
  await publish();
  expect((await listening).stderr).toContain(` is paused: evreg subscriptions update ${id} --active`);
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

const NO_ADDRESSES =
  "ftp://a http:// http://user:word@host/ 7710:/x http://7710/hooks 99999:80 0x7f000001 0 0/x 70000 localhost:0";

test.each(["", ...NO_ADDRESSES.split(" ")])("the address %j is refused", (text) => {
  expect(() => localUrl(text)).toThrow("takes an address such as");
});

test("a line does nothing to a terminal, and fits it", () => {
  const delivery = { event_id: 123_456, action: "a".repeat(60), attempt: 3 } as PulledDelivery;
  const result = { isDelivered: false, reason: `\u001b[2J${"x".repeat(200)}` };
  const finished = { outcome: "stored", status: "waiting" } as FinishedPull;
  const line = eventLine({ delivery, result, durationMs: 12, finished }, 0, 80);
  expect(line).not.toContain("\u001b[2J");
  expect(line.trimEnd().length).toBeLessThanOrEqual(80);
});
