import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { cleanEnv, STARTED_BY, temporaryFolder } from "../support/program.ts";
import { serveHere } from "../support/server.ts";
import { startReceiver } from "../support/receiver.ts";

/** As the bar leaves the screen below it. */
const CLEARED = "\u001b[0J";

/** util-linux's `script` gives a command a terminal of its own. */
const SCRIPT = "/usr/bin/script";
const folder = temporaryFolder();
const settings = join(folder.path, "settings");

interface Session {
  readonly code: number | null;
  /** All that the terminal was sent. */
  readonly text: string;
}

/** @param react called with all text so far at each piece; what it answers is typed in, once */
function onTerminal(
  columns: number,
  words: readonly string[],
  react: (text: string) => string | undefined = () => undefined,
): Promise<Session> {
  const command = [...STARTED_BY, ...words].map((word) => `'${word}'`).join(" ");
  const child = spawn(SCRIPT, ["-qec", `stty cols ${columns}; exec ${command}`, "/dev/null"], {
    cwd: folder.path,
    env: cleanEnv({ TERM: "xterm", SHELL: "/bin/sh", EVREG_CONFIG_DIR: settings }),
  });
  let text = "";
  let typed = false;
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    const keys = typed ? undefined : react(text);
    if (keys === undefined) return;
    typed = true;
    child.stdin.write(keys);
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, text }));
  });
}

/** The same without a terminal of its own, for commands that ask nothing: they only look at how wide it is. */
async function shownOn(columns: number, words: readonly string[]): Promise<Session> {
  const { code, stdout, stderr } = await commandLine(folder.path, {}).run(words, { columns });
  return { code, text: stdout + stderr };
}

/** Types these keys when a token is asked for. */
function atPrompt(keys: string) {
  return (text: string) => (text.includes("Token (") ? keys : undefined);
}

/** Types these keys when a yes or no is asked for. */
function asking(keys: string) {
  return (text: string) => (text.includes("[y/N]") ? keys : undefined);
}

/** A file that declares these subscriptions. */
function registry(...names: string[]): string {
  const common = `"application": "asked", "action": "order.created", "handler": "https://a.example"`;
  return `{"subscriptions": [${names.map((name) => `{${common}, "subscription": "${name}"}`).join()}]}`;
}

describe.skipIf(process.platform !== "linux" || !existsSync(SCRIPT))("on a terminal", () => {
  beforeAll(async () => {
    const { run } = commandLine(folder.path, {});
    const schema = ["actions", "create", "order.created", "--application", "shop", "--schema", "-"];
    await run(schema, { input: '{"type":"object"}' });
    await run(["publish", "order.created", `{"note":"${"long ".repeat(30)}","raw":"\u009b31m"}`]);
  });
  afterAll(() => folder.remove());

  test("deleting a subscription asks first, and accepts a no", async () => {
    const { run } = commandLine(folder.path, {});
    const create = "--application keep --subscription it --action order.created --handler https://a.example";
    const made = await run(["subscriptions", "create", ...create.split(" "), "--json"]);
    const id = String((JSON.parse(made.stdout) as { data: { rowid: number } }).data.rowid);
    const no = await onTerminal(80, ["subscriptions", "delete", id], asking("\r"));
    expect(no.code).toBe(1);
    expect(no.text).toContain(`Delete subscription ${id} (keep/it to order.created)`);
    expect(no.text).toContain("Nothing was deleted.");
    const yes = await onTerminal(80, ["subscriptions", "delete", id], asking("y\r"));
    expect(yes).toMatchObject({ code: 0, text: expect.stringContaining("Deleted.") });
  });

  test("a token is prompted for, and not shown", async () => {
    const words = "context add prod --url http://127.0.0.1:9 --no-check --token-file -".split(" ");
    const { code, text } = await onTerminal(80, words, atPrompt("evreg_secret\r"));
    expect(code).toBe(0);
    expect(text).not.toContain("evreg_secret");
    const kept = readFileSync(join(settings, "contexts", "prod.json"), "utf8");
    expect(JSON.parse(kept)).toMatchObject({ token: "evreg_secret" });
    expect(await onTerminal(80, [...words, "--replace"], atPrompt("\u0004"))).toMatchObject({ code: 2 });
    expect(await onTerminal(80, [...words, "--replace"], atPrompt("\u0003"))).toMatchObject({ code: 130 });
  });

  test("a bulk shows its progress, and restores the terminal", async () => {
    const line = '{"action":"order.created","payload":{}}\n';
    writeFileSync(join(folder.path, "events.ndjson"), `${line.repeat(700)}bad\n${line}`);
    const { code, text } = await onTerminal(100, ["publish", "--batch", "events.ndjson"]);
    expect(code).toBe(7);
    expect(text).toMatch(/\d+% \| \d+ published, \d+ refused, [\d,]+\/s \| \S+ left/);
    expect(text).toContain("Line 701: ");
    expect(text).toMatch(
      /701 events published, 1 line refused\. Fix those lines and publish them separately\.\r\n$/,
    );
    expect(text.lastIndexOf("\u001b[?25h")).toBeGreaterThan(text.lastIndexOf("\u001b[?25l"));
  });

  test("waiting for deliveries shows progress, on a line that is removed at the end", async () => {
    const receiver = await startReceiver();
    const seen = Promise.withResolvers<void>();
    receiver.answer = () => ({ after: seen.promise });
    const config = join(folder.path, "receiver.yaml");
    writeFileSync(config, 'delivery: { allowHttp: true, allowNetworks: ["127.0.0.0/8"] }\n');
    const { run } = commandLine(folder.path, {});
    const create = "actions create order.awaited --application shop --schema -".split(" ");
    await run(create, { input: '{"type":"object"}' });
    const subscribe = "subscriptions create --application billing --name s --action order.awaited --handler";
    await run([...subscribe.split(" "), receiver.url, "--config", config]);
    const server = await serveHere(join(folder.path, ".evreg"), { dev: true });
    const publish = ["publish", "order.awaited", "{}", "--wait"];
    const { code, text } = await onTerminal(60, publish, (shown) => {
      if (shown.includes("1 delivering; 1 attempt so far")) seen.resolve();
      return undefined;
    });
    await server.stop();
    await receiver.close();
    expect(code).toBe(0);
    expect(text).toContain("1 delivering; 1 attempt so far");
    const kept = text.slice(text.lastIndexOf("so far"));
    expect(kept.slice(kept.indexOf(CLEARED) + CLEARED.length)).toMatch(/^Event +\d+\r\n/);
  });

  test("following a replay shows progress, and Ctrl-C leaves the replay running", async () => {
    const { run } = commandLine(folder.path, {});
    const subscribe =
      "subscriptions create --application billing --subscription late --action order.created --no-active --handler https://example.com";
    await run(subscribe.split(" "));
    const [, id = ""] = /^ +(\d+) +billing +late /m.exec((await run("subscriptions")).stdout) ?? [];
    const replay = `subscriptions replay ${id} --from 2020-01-01T00:00:00Z --status missed --wait`;
    const server = await serveHere(join(folder.path, ".evreg"), { dev: true });
    const { code, text } = await onTerminal(100, replay.split(" "), (seen) =>
      /0 of \d+ handed to delivery/.test(seen) ? "\u0003" : undefined,
    );
    await server.stop();
    expect(code).toBe(130);
    expect(text).toMatch(/ 0% \| 0 of \d+ handed to delivery/);
    expect(text).toMatch(/Interrupted; replay 1 is not: .*evreg replays cancel 1\r\n$/);
    expect(text.lastIndexOf("\u001b[?25h")).toBeGreaterThan(text.lastIndexOf("\u001b[?25l"));
    expect((await run("replays")).stdout).toContain("running");
  });

  test("pruning asks first, and no or Ctrl-C changes nothing", async () => {
    const { run } = commandLine(folder.path, {});
    writeFileSync(join(folder.path, "two.json"), registry("kept", "gone"));
    writeFileSync(join(folder.path, "one.json"), registry("kept"));
    const created = await shownOn(120, ["apply", "-f", "two.json"]);
    // A person may see the secrets, as with `subscriptions create`.
    expect(created.text).toMatch(/secret of asked\/kept to order\.created: whsec_\S+\n/);
    const prune = ["apply", "-f", "one.json", "--prune"];
    const left = async () => (await run("subscriptions list --application asked")).stdout;

    const refused = await onTerminal(120, prune, asking("\r"));
    expect(refused.code).toBe(1);
    expect(refused.text).toContain("- subscription asked/gone to order.created");
    expect(refused.text).toContain("Delete 1 subscription, with the deliveries not finished yet?");
    expect(refused.text).toMatch(/Nothing was changed\.\r\n$/);
    const interrupted = await onTerminal(120, prune, asking("\u0003"));
    expect(interrupted.code).toBe(130);
    expect(await left()).toContain("gone");
  });

  test("the server prints its address and what to type next, and Ctrl-C stops it in order", async () => {
    const { code, text } = await onTerminal(
      80,
      ["serve", "--dev", "--port", "0", "--data", "first"],
      (seen) => (seen.includes("Ctrl-C stops it.") ? "\u0003" : undefined),
    );
    expect(code).toBe(0);
    expect(text).toMatch(/listens on http:\/\/127\.0\.0\.1:\d+, for this machine only/);
    expect(text).toContain(`data   ${join(folder.path, "first")}`);
    // Of the actions there are, all are evreg's own.
    expect(text).toContain("evreg actions create hello.said");
    expect(text).toMatch(/stopped\r\n$/);
  });
});
