import { Config, settings } from "@oclif/core";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { completionAt, wordsOf } from "../../src/cli/completion.ts";
import { completionScript, SCRIPTS } from "../../src/commands/shell.ts";
import { cleanEnv, PROGRAM, temporaryFolder } from "../support/program.ts";
import { commandLine } from "../support/command-line.ts";

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
  const candidatesAt = (line: string) => {
    const target = at(line);
    return typeof target === "string" ? [] : target;
  };
  const wordsAt = (line: string) => candidatesAt(line).map(({ value }) => value);

  test("are commands, their verbs and their flags, each with a description", () => {
    expect(wordsAt("")).toEqual(expect.arrayContaining(["actions", "publish", "help", "completion"]));
    expect(wordsAt("")).not.toContain("complete");
    expect(wordsAt("-")).toEqual(["--help", "--version"]);
    expect(wordsAt("tokens ")).toEqual(["create", "list", "revoke"]);
    const candidates = candidatesAt("tokens revoke 1 --");
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

  test.each(["publish a ", "actions get ", "events --limit ", "bogus ", "events --bogus="])(
    "are none for %j",
    (line) => {
      expect(at(line)).toEqual([]);
    },
  );

  test("leave files and folders to the shell", () => {
    for (const line of ["publish --file ", "apply -f ", "config check ", "import ", "serve --config=x"]) {
      expect(at(line), line).toBe("files");
    }
    expect(at("serve --data ")).toBe("folders");
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

const has = (shell: string) => spawnSync(shell, ["--version"]).error === undefined;

describe("the scripts", () => {
  test("are printed", async () => {
    const { run, json } = commandLine(folder.path, {});
    const stdout = expect.stringContaining(SCRIPTS.bash) as string;
    expect(await run("completion bash")).toEqual({ code: 0, stdout, stderr: "" });
    expect((await json("completion fish")).data).toContain(SCRIPTS.fish);
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
