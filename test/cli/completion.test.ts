import { Config, settings } from "@oclif/core";
import { execFileSync, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { completionAt } from "../../src/cli/completion.ts";
import { SCRIPTS } from "../../src/commands/shell.ts";
import { useFolder } from "../support/command-line.ts";
import { cleanEnv, PROGRAM } from "../support/program.ts";

const { at: pathOf, write, run, json } = useFolder();

describe("suggestions", () => {
  let config: Config;
  beforeAll(async () => {
    settings.enableAutoTranspile = false;
    config = await Config.load({ root: fileURLToPath(new URL("../..", import.meta.url)) });
  });

  /** By the words of a line, the last one still being typed. */
  const candidatesAt = (line: string) => completionAt(line.split(" "), config);
  const wordsAt = (line: string) => candidatesAt(line).map(({ value }) => value);

  test("are commands, their verbs and their flags, each with a description", () => {
    expect(wordsAt("")).toEqual(expect.arrayContaining(["actions", "publish", "completion"]));
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

  test("include known values, also after the = of bash", () => {
    expect(wordsAt("events --order ")).toEqual(["asc", "desc"]);
    expect(wordsAt("events --order = d")).toEqual(["asc", "desc"]);
    expect(wordsAt("completion ")).toEqual(["bash", "zsh", "fish"]);
    expect(wordsAt("help ")).toEqual(expect.arrayContaining(["tokens"]));
    expect(wordsAt("help tokens ")).toEqual(["create", "list", "revoke"]);
  });

  test.each(["publish a ", "actions get ", "events --limit ", "bogus ", "apply -f ", "serve --data "])(
    "are none for %j, where the shell has its files",
    (line) => {
      expect(candidatesAt(line)).toEqual([]);
    },
  );
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

  test.runIf(has("bash"))("in bash insert the answer", () => {
    const program = `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`;
    const bin = pathOf(write("evreg", program, 0o755));
    const complete = (...words: readonly string[]) => `
      COMP_WORDS=(evreg ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}
      _evreg '${bin}'; printf '%s\\n' "\${COMPREPLY[@]}" --`;
    const answer = bash(
      SCRIPTS.bash,
      complete("tokens", "re"),
      complete("events", "--order", "=", "d"),
      complete("events", "--or"),
      complete("events", "--order", ""),
    );
    expect(answer.split("--\n")).toEqual(["revoke\n", "desc\n", "--order\n", "asc\ndesc\n", ""]);
  });

  for (const shell of ["zsh", "fish"] as const) {
    test.runIf(has(shell))(`${shell} can read its one`, () => {
      const read = spawnSync(shell, ["-n"], { input: SCRIPTS[shell], encoding: "utf8" });
      expect(read).toMatchObject({ status: 0, stderr: "" });
    });
  }
});
