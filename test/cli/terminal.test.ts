import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { useFolder } from "../support/command-line.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { cleanEnv, type Line, STARTED_BY, wordsOf } from "../support/program.ts";
import { serveHere } from "../support/server.ts";

/** As the bar leaves the screen below it. */
const CLEARED = "\u001b[0J";

/** util-linux's `script` gives a command a terminal of its own. */
const SCRIPT = "/usr/bin/script";
const { folder, at, write, run, json, expectEach } = useFolder();

interface Session {
  readonly code: number | null;
  /** All that the terminal was sent. */
  readonly text: string;
}

/** @param react called with all text so far at each piece; what it answers is typed in, once */
function onTerminal(
  columns: number,
  line: Line,
  react: (text: string) => string | undefined = () => undefined,
): Promise<Session> {
  const command = [...STARTED_BY, ...wordsOf(line)].map((word) => `'${word}'`).join(" ");
  const child = spawn(SCRIPT, ["-qec", `stty cols ${columns}; exec ${command}`, "/dev/null"], {
    cwd: folder,
    env: cleanEnv({ TERM: "xterm", SHELL: "/bin/sh" }),
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

/** Types these keys once something is asked for. */
const answering = (question: string, keys: string) => (text: string) =>
  text.includes(question) ? keys : undefined;
const asking = (keys: string) => answering("[y/N]", keys);

/** A file that declares these subscriptions. */
function registry(...names: string[]): string {
  const common = `"application": "asked", "action": "order.created", "handler": "https://a.example"`;
  return `{"subscriptions": [${names.map((name) => `{${common}, "subscription": "${name}"}`).join()}]}`;
}

describe.skipIf(process.platform !== "linux" || !existsSync(SCRIPT))("on a terminal", () => {
  beforeAll(async () => {
    const input = '{"type":"object"}';
    for (const action of ["order.created", "order.awaited"])
      await run(`actions create ${action} --application shop --schema -`, { input });
    await run("publish order.created {}");
  });

  test("deleting a subscription asks first, and accepts a no", async () => {
    const create = "--application keep --subscription it --action order.created --handler https://a.example";
    const { data } = await json<{ rowid: number }>(`subscriptions create ${create}`);
    const remove = `subscriptions delete ${data.rowid}`;
    const no = await onTerminal(80, remove, asking("\r"));
    expect(no.code).toBe(1);
    expect(no.text).toContain(`Delete subscription ${data.rowid} (keep/it to order.created)`);
    expect(no.text).toContain("Nothing was deleted.");
    const yes = await onTerminal(80, remove, asking("y\r"));
    expect(yes).toMatchObject({ code: 0, text: expect.stringContaining("Deleted.") });
  });

  test("a token is not typed on a terminal, which would show it", async () => {
    const { code, text } = await onTerminal(100, "events --token-file -");
    expect(code).toBe(2);
    expect(text).toContain("name a file, or pipe the value in");
  });

  test("a bulk shows its progress, and restores the terminal", async () => {
    const line = '{"action":"order.created","payload":{}}\n';
    write("events.ndjson", `${line.repeat(700)}bad\n${line}`);
    const { code, text } = await onTerminal(100, "publish --batch events.ndjson");
    expect(code).toBe(7);
    expect(text).toMatch(/\d+% \| \d+ published, \d+ refused, [\d,]+\/s \| \S+ left/);
    expect(text).toContain("Line 701: ");
    expect(text).toMatch(
      /701 events published, 1 line refused\. Fix those lines and publish them separately\.\r\n$/,
    );
    expect(text.lastIndexOf("\u001b[?25h")).toBeGreaterThan(text.lastIndexOf("\u001b[?25l"));
  });

  test("waiting for deliveries shows progress, on a line that is removed at the end", async () => {
    const receiver = await openReceiver();
    const seen = Promise.withResolvers<void>();
    receiver.answer = () => ({ after: seen.promise });
    const server = await serveHere(at(".evreg"), { dev: true });
    const subscribe = "subscriptions create --application billing --name s --action order.awaited --handler";
    await run(`${subscribe} ${receiver.url}`);
    const { code, text } = await onTerminal(60, "publish order.awaited {} --wait", (shown) => {
      if (shown.includes("1 delivering; 1 attempt so far")) seen.resolve();
      return undefined;
    });
    await server.stop();
    expect(code).toBe(0);
    expect(text).toContain("1 delivering; 1 attempt so far");
    const kept = text.slice(text.lastIndexOf("so far"));
    expect(kept.slice(kept.indexOf(CLEARED) + CLEARED.length)).toMatch(/^Event +\d+\r\n/);
  });

  test("pruning asks first, and no or Ctrl-C changes nothing", async () => {
    write("two.json", registry("kept", "gone"));
    write("one.json", registry("kept"));
    // A person may see the secrets, as with `subscriptions create`.
    const created = await onTerminal(120, "apply -f two.json");
    expect(created.text).toMatch(/secret of asked\/kept to order\.created: whsec_\S+\r\n/);
    const prune = "apply -f one.json --prune";
    const refused = await onTerminal(120, prune, asking("\r"));
    expect(refused.code).toBe(1);
    expect(refused.text).toContain("- subscription asked/gone to order.created");
    expect(refused.text).toContain("Delete 1 subscription, with the deliveries not finished yet?");
    expect(refused.text).toMatch(/Nothing was changed\.\r\n$/);
    const interrupted = await onTerminal(120, prune, asking("\u0003"));
    expect(interrupted.code).toBe(130);
    await expectEach([["subscriptions list --application asked", 0, /gone/]]);
  });

  test("the server prints its address and what to type next, and Ctrl-C stops it in order", async () => {
    const serve = "serve --dev --port 0 --data first";
    const { code, text } = await onTerminal(80, serve, answering("Ctrl-C stops it.", "\u0003"));
    expect(code).toBe(0);
    expect(text).toMatch(/listens on http:\/\/127\.0\.0\.1:\d+, for this machine only/);
    expect(text).toContain(`data   ${at("first")}`);
    // Of the actions there are, all are evreg's own.
    expect(text).toContain("evreg actions create hello.said");
    expect(text).toMatch(/stopped\r\n$/);
  });
});
