import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { cleanEnv } from "../support/program.ts";
import { publish as publishAt, register, subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";
import { until } from "../support/until.ts";
import {
  expectToRefuseAllButGenuine,
  listenFor,
  startReceiver,
  type ReceiverProcess,
} from "./receiver-process.ts";
import { isThere, pathWithEvreg } from "./programs.ts";

const ALL_EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));
const EXAMPLES = join(ALL_EXAMPLES, "receivers");
const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const execute = promisify(execFile);
const running: ReceiverProcess[] = [];
const served = useServed();
const { folder, at, data } = served;
afterAll(() => Promise.all(running.map((receiver) => receiver.stop())));

interface Example {
  readonly command: readonly string[];
  /** For a receiver that is started for each connection, and handles what it stored by another command. */
  readonly handle?: readonly string[];
}

/** An action, and a receiver subscribed to it that begins with an event left by an earlier run. */
async function subscribed(name: string, { command, handle }: Example) {
  const action = `order.created.${name}`;
  await register(served.evreg, action);
  const port = await freePort();
  const given = { action, handler: `http://127.0.0.1:${port}/` };
  const subscription = await subscribe(served.evreg, name, given);
  const inbox = at(name);
  mkdirSync(inbox);
  writeFileSync(join(inbox, "900.json"), deliveryOf("900", action, '{"id":"left"}'));
  writeFileSync(join(inbox, "901.json"), deliveryOf("901", action, '{"id":"handled"}'));
  writeFileSync(join(inbox, "901.done"), "");
  const { secret } = subscription;
  const env = { WEBHOOK_SECRET: secret, INBOX: inbox };
  const start = { command, cwd: folder, port, env };
  const receiver = await (handle === undefined ? startReceiver(start) : listenFor(start));
  running.push(receiver);
  /** All that it has handled so far, a line an event. */
  const handled = async (): Promise<string> => {
    if (handle !== undefined) {
      const [program = "", ...words] = handle;
      receiver.printed.stdout += (await execute(program, words, { env: cleanEnv(env) })).stdout;
    }
    return receiver.printed.stdout;
  };
  const publish = async (id: string): Promise<{ event: number; delivery: number }> => {
    const event = await publishAt(served.evreg, action, `{"id":"${id}","name":"Zoë", "total":12.50}`);
    const { data: deliveries } = await served.evreg.events.deliveries(event.rowid);
    await delivered(deliveries[0]!.rowid, 1);
    return { event: event.rowid, delivery: deliveries[0]!.rowid };
  };
  return { subscription, secret, receiver, inbox, handled, publish };
}

function deliveryOf(id: string, action: string, payload: string): string {
  return `{"event_id":"${id}","action":"${action}","payload":${payload},"timestamp":"2026-01-02T00:00:00.000Z","delivery_attempt":1}`;
}

/** Waits until the event's delivery has had so many attempts. The last of them must be a success. */
async function delivered(delivery: number, attempts: number): Promise<void> {
  await until(`delivery ${delivery} has had ${attempts} attempts`, async () => {
    const { attempts: made, status } = (await served.evreg.deliveries.get(delivery)).data;
    return made.length >= attempts && !["pending", "delivering"].includes(status);
  });
  const { data: found } = await served.evreg.deliveries.get(delivery);
  expect(found).toMatchObject({ status: "delivered", attempts: { length: attempts } });
}

async function expectToReceive(name: string, example: Example): Promise<void> {
  const { subscription, secret, receiver, inbox, handled, publish } = await subscribed(name, example);
  const first = await publish("A-1");
  await served.evreg.subscriptions.rotateSecret(subscription.rowid);
  const second = await publish("A-2");
  // The same event once more.
  await served.evreg.deliveries.retry(second.delivery);
  await delivered(second.delivery, 2);
  await expectToRefuseAllButGenuine(receiver.url, secret);
  const last = await publish("A-3");

  const ids = [900, first.event, second.event, 42, last.event];
  await until("it has handled them all", async () => (await handled()).split("\n").length > ids.length);
  const lines = (await handled()).split("\n").slice(0, -1);
  expect(lines).toHaveLength(ids.length);
  for (const id of ids) {
    expect(lines.filter((line) => new RegExp(`^(\\{"event_id":")?${id}\\b`).test(line))).toHaveLength(1);
  }
  expect(
    lines.filter((line) => line.includes('"name":"Zoë"') || line.includes('"name": "Zoë"')),
  ).toHaveLength(3);
  await until("all are marked as done, and nothing else is left", () => {
    const kept = [...ids, 901].flatMap((id) => [`${id}.done`, `${id}.json`]).toSorted();
    return readdirSync(inbox).toSorted().join() === kept.join();
  });
  expect(receiver.printed.stdout + receiver.printed.stderr).not.toContain(secret.slice(6));
}

describe("a receiver accepts a server's deliveries once, and nothing forged or old:", () => {
  test("Node", () =>
    expectToReceive("node", { command: [process.execPath, join(EXAMPLES, "receiver.mjs")] }));

  test("Python", async ({ skip }) => {
    const isNew = "import sys; sys.exit(sys.version_info < (3, 9))";
    const python = ["python3", "python"].find((name) => isThere(name, "-c", isNew));
    if (python === undefined) skip("There is no Python 3.9 or later here.");
    else await expectToReceive("python", { command: [python, join(EXAMPLES, "receiver.py")] });
  });

  test("Go", async ({ skip }) => {
    skip(process.env["FAULTS"] !== "long", "A first build takes half a minute; npm run test:faults runs it.");
    skip(!isThere("go", "version"), "There is no Go here.");
    const program = at("receiver");
    const env = { ...process.env, GO111MODULE: "off", GOTOOLCHAIN: "local", GOPROXY: "off", GOFLAGS: "" };
    await execute("go", ["build", "-o", program, join(EXAMPLES, "receiver.go")], { env });
    await expectToReceive("go", { command: [program] });
  }, 300_000);

  test("shell", async ({ skip }) => {
    skip(!isThere("openssl", "version"), "There is no openssl here.");
    const command = ["sh", join(EXAMPLES, "receiver.sh")];
    await expectToReceive("shell", { command, handle: [...command, "handle"] });
  });
});

test("a receiver accepts what send.sh signs with the receiver's secret, and nothing signed by another", async ({
  skip,
}) => {
  const missing = [
    ["openssl", "version"],
    ["curl", "--version"],
  ].find(([name = "", word = ""]) => !isThere(name, word));
  skip(missing !== undefined, `There is no ${missing?.[0]} here.`);
  const receiver = await startReceiver({
    command: [process.execPath, join(EXAMPLES, "receiver.mjs")],
    cwd: folder,
    port: await freePort(),
    env: { WEBHOOK_SECRET: SECRET, INBOX: at("sent") },
  });
  running.push(receiver);
  const send = (secret: string) =>
    execute("sh", [join(EXAMPLES, "send.sh")], {
      env: cleanEnv({ WEBHOOK_SECRET: secret, PORT: String(receiver.port) }),
    });
  await send(SECRET);
  await until("the event is handled", () => receiver.printed.stdout.endsWith("\n"));
  expect(receiver.printed.stdout).toBe('1 order.created {"id":"A-1","total":12.5}\n');
  const other = `whsec_${Buffer.alloc(32, 9).toString("base64")}`;
  await expect(send(other)).rejects.toMatchObject({ code: 22 });
});

test("the steps of the folder's README end with a delivery", async () => {
  const port = String(await freePort());
  const readme = readFileSync(join(ALL_EXAMPLES, "README.md"), "utf8");
  const block = /^```sh\n(.*?)^```$/ms.exec(readme)?.[1] ?? "";
  // What a reader does by hand: copy the secret from what the command before shows.
  const script = block
    .split("\n")
    .map((line) => (line.includes("# shows the secret") ? line.replace("#", "> created #") : line))
    .join("\n")
    .replaceAll("8080", port)
    .replace("whsec_…", "$(grep -o 'whsec_.*' created)");
  const place = at("copied");
  cpSync(ALL_EXAMPLES, place, { recursive: true });
  const env = cleanEnv({ EVREG_DATA: data, PORT: port, PATH: pathWithEvreg(folder) });
  // The receiver says what it has got after it has answered, so it is stopped only then.
  const shell = spawn("sh", ["-e", "-c", `trap 'kill $!' EXIT\n${script}\nread stopped`], {
    cwd: place,
    env,
  });
  let stdout = "";
  shell.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  const ended = once(shell, "close");
  await until("the receiver has got the event", () =>
    Promise.resolve(stdout.includes('order.created {"id":"A-1","total":12.5}') || shell.exitCode !== null),
  );
  shell.stdin.end("now\n");
  await ended;
  expect(stdout).toMatch(/^ *\d+ +\d+ +order\.created +billing\/try +delivered/m);
  expect(stdout).toContain('order.created {"id":"A-1","total":12.5}');
});
