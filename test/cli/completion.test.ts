import { Config, settings } from "@oclif/core";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Harness, startHarness } from "../http/harness.ts";
import { completionAt, unquoted, wordsOf } from "../../src/cli/completion.ts";
import { completionScript, SCRIPTS } from "../../src/commands/shell.ts";
import { cleanEnv, PROGRAM, temporaryFolder } from "../support/program.ts";
import { runMany } from "../support/run-many.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe("suggestions", () => {
  let config: Config;
  beforeAll(async () => {
    settings.enableAutoTranspile = false;
    config = await Config.load({ root: fileURLToPath(new URL("../..", import.meta.url)) });
  });

  /** The line's words, the last one still being typed. */
  const at = (line: string) => completionAt(wordsOf(`evreg ${line}`).slice(1), config);
  const wordsAt = (line: string) => {
    const slot = at(line);
    return slot.kind === "words" ? slot.candidates.map(({ value }) => value) : slot;
  };

  test("are commands, their verbs and their flags, each with a description", () => {
    expect(wordsAt("")).toEqual(expect.arrayContaining(["actions", "publish", "help", "completion"]));
    expect(wordsAt("")).not.toContain("complete");
    expect(wordsAt("-")).toEqual(["--help", "--version"]);
    expect(wordsAt("tokens ")).toEqual(["create", "list", "revoke"]);
    const slot = at("tokens revoke 1 --");
    expect(slot).toMatchObject({ kind: "words" });
    const { candidates } = slot as Extract<typeof slot, { kind: "words" }>;
    expect(candidates).toContainEqual({ value: "--json", about: expect.stringContaining("JSON") });
    for (const { value, about } of candidates) expect(about, value).toBeTruthy();
  });

  test("offer a flag once unless it may be repeated, under its alias and the topic's own name too", () => {
    expect(wordsAt("events --action a --")).not.toContain("--action");
    expect(wordsAt("events list --action=a --")).not.toContain("--action");
    expect(wordsAt("tokens create x --scope read --")).toContain("--scope");
    expect(wordsAt("subscriptions list --")).toEqual(expect.arrayContaining(["--active", "--no-active"]));
    expect(wordsAt("subscriptions list --no-active --")).not.toContain("--active");
    expect(wordsAt("subscriptions create --name x --")).not.toContain("--subscription");
    expect(wordsAt("tokens list ")).toContain("--json");
  });

  test("include known values, after a space and after =", () => {
    expect(wordsAt("events --order ")).toEqual(["asc", "desc"]);
    expect(wordsAt("events --order=")).toEqual(["--order=asc", "--order=desc"]);
    expect(wordsAt("completion ")).toEqual(["bash", "zsh", "fish"]);
    expect(wordsAt("help ")).toEqual(expect.arrayContaining(["exit-codes", "tokens"]));
    expect(wordsAt("help tokens ")).toEqual(["create", "list", "revoke"]);
  });

  test.each([
    ["actions get ", { of: "action" }],
    ["actions get --data x ", { of: "action", flags: { data: "x" } }],
    ["actions types a b ", { of: "action" }],
    ["publish ", { of: "action" }],
    ["publish --wait -- ", { of: "action" }],
    ["publish a ", "its payload"],
    ["actions create ", "a new name"],
    ["events --action ", { of: "action", prefix: "" }],
    ["events --action=or", { of: "action", prefix: "--action=" }],
    ["actions retire a --successor ", { of: "action" }],
    ["actions list --application ", { of: "application" }],
    ["subscriptions update ", { of: "subscription" }],
    ["deliveries --subscription ", { of: "subscription" }],
    ["subscriptions create --subscription ", "a new name"],
    ["tokens revoke ", { of: "token" }],
    ["replays cancel ", { of: "replay" }],
    ["context use ", { of: "context" }],
    ["context add ", "a new name"],
    ["events --url http://127.0.0.1:1 --context ", { of: "context", flags: { url: "http://127.0.0.1:1" } }],
    ["deliveries get ", "too many"],
    ["events --limit ", "a number"],
    ["bogus ", "no command"],
    ["events --bogus=", "no flag"],
  ])("%j: %o", (line, expected) => {
    const slot = at(line);
    if (typeof expected === "string") expect(slot).toEqual({ kind: "words", candidates: [] });
    else expect(slot).toMatchObject({ kind: "names", ...expected });
  });

  test("leave files and folders to the shell", () => {
    for (const line of ["publish --file ", "apply -f ", "config check ", "import ", "serve --config=x"]) {
      expect(at(line), line).toEqual({ kind: "files" });
    }
    expect(at("serve --data ")).toEqual({ kind: "folders" });
  });
});

test.each([
  ["evreg ", ["evreg", ""]],
  ["evreg  a  b", ["evreg", "a", "b"]],
  [
    String.raw`evreg --data my\ folder "a b" 'c "d' x`,
    ["evreg", "--data", String.raw`my\ folder`, '"a b"', `'c "d'`, "x"],
  ],
  [`evreg "a b`, ["evreg", `"a b`]],
  [String.raw`evreg a\ `, ["evreg", String.raw`a\ `]],
  ["evreg --x=http://h:1 ", ["evreg", "--x=http://h:1", ""]],
  ["", []],
])("the line %j has the words %j", (line, words) => {
  expect(wordsOf(line)).toEqual(words);
});

test.each([
  [String.raw`my\ folder`, "my folder"],
  [`"a b"c'd "'`, 'a bcd "'],
  [String.raw`"a\"b\n"`, String.raw`a"b\n`],
  [`"open`, "open"],
])("%s is %s without quotes", (word, text) => {
  expect(unquoted(word)).toBe(text);
});

const ask = (...words: string[]) => ["complete", "words", "--", ...words];

describe("names", () => {
  const EVIL = "my shop $(touch pwned)";
  let harness: Harness;
  let env: Record<string, string>;
  beforeAll(async () => {
    harness = await startHarness();
    const { actions, subscriptions } = harness.owner;
    for (const action of ["order.created", "order.shipped", "user.created"]) {
      await actions.create({ action, application: EVIL, schemata: { type: "object" } });
    }
    await subscriptions.create({
      application: "billing",
      subscription: "invoices",
      action: "order.created",
      handler: "https://hooks.example.com/",
    });
    env = { EVREG_URL: harness.url, EVREG_TOKEN: await harness.token("admin") };
  });
  afterAll(() => harness.close());

  test("come from the server that the command would ask", async () => {
    const settingsFolder = join(folder.path, "settings");
    const elsewhere = { EVREG_CONFIG_DIR: settingsFolder };
    writeFileSync(join(folder.path, "token"), env["EVREG_TOKEN"]!);
    const typed = ["--url", `"${harness.url}"`, "--token-file", "to\\ken"];
    const [actions, prefix, application, subscription, token, byFlags, , context] = await runMany(
      [
        [ask("actions", "get", "or"), env],
        [ask("events", "--action=user"), env],
        [ask("actions", "list", "--application", ""), env],
        [ask("deliveries", "--subscription", ""), env],
        [ask("tokens", "revoke", ""), env],
        ask("actions", "get", ...typed, "user"),
        [["context", "add", "prod", "--url", harness.url, "--no-check"], elsewhere],
        [ask("events", "--context", "p"), elsewhere],
      ],
      { cwd: folder.path },
    );
    expect(actions).toEqual({
      code: 0,
      stdout: `order.created\t${EVIL}\norder.shipped\t${EVIL}\n`,
      stderr: "",
    });
    expect(prefix?.stdout).toBe(`--action=user.created\t${EVIL}\n`);
    expect(application?.stdout).toBe(`billing\t\nevreg\t\n${EVIL}\t\n`);
    expect(subscription?.stdout).toBe("billing/invoices\t1 order.created\n");
    expect(token?.stdout).toMatch(/^\d+\tadmin admin\n$/);
    expect(byFlags?.stdout).toBe(`user.created\t${EVIL}\n`);
    expect(context?.stdout).toBe(`prod\t${harness.url}\n`);
  });

  test("are empty without a message where nothing answers; a folder without a server is not opened", async () => {
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const never = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    mkdirSync(join(folder.path, "data"));
    const line = ask("actions", "get", "");
    const outcomes = await runMany(
      [
        [line, { EVREG_URL: "http://127.0.0.1:9" }],
        [line, { EVREG_URL: harness.url }],
        [line, { EVREG_URL: "no address" }],
        [line, { EVREG_PRT: "slip" }],
        [line, { EVREG_CONTEXT: "none" }],
        [line, { EVREG_DATA: "data" }],
        [line, { EVREG_DATA: "nowhere" }],
        [ask("actions", "get", "--token-file", "-", ""), env],
        [ask("actions", "get", "--token-file", "nowhere", ""), env],
        [line, { EVREG_URL: never }],
        ask(),
        ["complete"],
        ["complete", "line"],
      ],
      { cwd: folder.path },
    );
    silent.closeAllConnections();
    silent.close();
    for (const [at, outcome] of outcomes.slice(0, 10).entries()) {
      expect.soft(outcome, String(at)).toEqual({ code: 0, stdout: "", stderr: "" });
    }
    for (const { code, stderr } of outcomes) expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(existsSync(join(folder.path, "data", "evreg.db"))).toBe(false);
    expect(existsSync(join(folder.path, "nowhere"))).toBe(false);
  });
});

const has = (shell: string) => spawnSync(shell, ["--version"]).error === undefined;

describe("the scripts", () => {
  test("are printed, and an unknown shell is named in the error", async () => {
    const [bash, fish, none] = await runMany([
      ["completion", "bash"],
      ["completion", "fish", "--json"],
      ["completion", "tcsh"],
    ]);
    expect(bash).toEqual({ code: 0, stdout: expect.stringContaining(SCRIPTS.bash) as string, stderr: "" });
    expect(JSON.parse(fish!.stdout)).toEqual({ data: expect.stringContaining(SCRIPTS.fish) as string });
    expect(none).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("bash, zsh, fish") });
  });

  test.runIf(has("bash"))("in bash insert the answer, quoted and after the last : or =", () => {
    const bin = join(folder.path, "evreg");
    writeFileSync(bin, `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`, { mode: 0o755 });
    const complete = (line: string, word: string) => `
      COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE};
      _evreg '${bin}' '${word}' x; printf '%s\\n' "\${COMPREPLY[@]}" --`;
    const script = [
      SCRIPTS.bash,
      complete("evreg tokens re", "re"),
      complete("evreg events --order=d", "d"),
      complete("evreg events --or", "--or"),
      complete("evreg events --order ", ""),
    ].join("\n");
    const answer = execFileSync("bash", ["--norc", "-c", script], { env: cleanEnv(), encoding: "utf8" });
    const [verb, value, flag, listed] = answer.split("--\n");
    expect([verb, value, flag, listed]).toEqual(["revoke\n", "desc\n", "--order\n", "asc\ndesc\n"]);
    const quoting = `${SCRIPTS.bash}
      evreg() { printf 'my shop $(touch pwned)\\tx\\n'; }
      COMP_LINE='evreg a --application my'; COMP_POINT=\${#COMP_LINE};
      _evreg evreg my x; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const quoted = execFileSync("bash", ["--norc", "-c", quoting], { encoding: "utf8" });
    expect(quoted).toBe("my\\ shop\\ \\$\\(touch\\ pwned\\)\n");
  });

  test.runIf(has("bash"))("in bash make evreg a function where no program has that name", () => {
    const script = completionScript("bash", [process.execPath, PROGRAM]);
    const typed = (before: string) => {
      const lines = [before, script, "evreg completion bash --json"].join("\n");
      return execFileSync("bash", ["--norc", "-c", lines], { env: cleanEnv(), encoding: "utf8" });
    };
    expect(typed("")).toContain('{"data":"# Completion of');
    expect(typed("evreg() { echo another; }")).toBe("another\n");
  });

  for (const shell of ["zsh", "fish"] as const) {
    test.runIf(has(shell))(`${shell} can read its one`, () => {
      const input = completionScript(shell, ["/opt/my evreg"]);
      const read = spawnSync(shell, ["-n"], { input, encoding: "utf8" });
      expect(read).toMatchObject({ status: 0, stderr: "" });
    });
  }
});
