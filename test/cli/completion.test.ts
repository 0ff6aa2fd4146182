import { Config, settings } from "@oclif/core";
import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { completionAt, wordsOf } from "../../src/cli/completion.ts";
import { completionScript, SCRIPTS } from "../../src/commands/shell.ts";
import { useFolder } from "../support/command-line.ts";
import { cleanEnv, PROGRAM } from "../support/program.ts";

const { at: pathOf, write, run, json } = useFolder();

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
    expect(wordsAt("help ")).toEqual(expect.arrayContaining(["tokens"]));
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
const bash = (...lines: readonly string[]): string =>
  execFileSync("bash", ["--norc", "-c", lines.join("\n")], { env: cleanEnv(), encoding: "utf8" });

describe("the scripts", () => {
  test("are printed", async () => {
    const stdout = expect.stringContaining(SCRIPTS.bash) as string;
    expect(await run("completion bash")).toEqual({ code: 0, stdout, stderr: "" });
    expect((await json("completion fish")).data).toContain(SCRIPTS.fish);
  });

  test.runIf(has("bash"))("in bash insert the answer, quoted and after the last : or =", () => {
    const program = `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`;
    const bin = pathOf(write("evreg", program, 0o755));
    const complete = (line: string, word: string) => `
      COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE};
      _evreg '${bin}' '${word}' x; printf '%s\\n' "\${COMPREPLY[@]}" --`;
    const answer = bash(
      SCRIPTS.bash,
      complete("evreg tokens re", "re"),
      complete("evreg events --order=d", "d"),
      complete("evreg events --or", "--or"),
      complete("evreg events --order ", ""),
    );
    expect(answer.split("--\n")).toEqual(["revoke\n", "desc\n", "--order\n", "asc\ndesc\n", ""]);
    const quoted = bash(
      SCRIPTS.bash,
      "evreg() { printf 'my shop $(touch pwned)\\tx\\n'; }",
      "COMP_LINE='evreg a --application my'; COMP_POINT=${#COMP_LINE}",
      `_evreg evreg my x; printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
    expect(quoted).toBe("my\\ shop\\ \\$\\(touch\\ pwned\\)\n");
  });

  test.runIf(has("bash"))("in bash make evreg a function where no program has that name", () => {
    const script = completionScript("bash", [process.execPath, PROGRAM]);
    const typed = (before: string) => bash(before, script, "evreg completion bash --json");
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
