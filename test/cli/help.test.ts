import { expect, test } from "vitest";
import { tmpdir } from "node:os";
import { commandLine } from "../support/command-line.ts";

const { runEach, expectEach } = commandLine(tmpdir(), {});

test("help exists for commands and topics of commands", async () => {
  await expectEach([
    ["help tokens create", 0, /^Create a token\./],
    ["help nosuch", 2, "", /tokens, whoami\./],
  ]);
  const [commands, flagged, root] = await runEach("help tokens", "tokens --help", "help");
  expect(commands?.stdout).toContain("tokens revoke");
  expect(commands).toEqual(flagged);
  expect(root?.stdout).not.toContain("tokens revoke");
});

test("the usage is made of a command's arguments and flags, where it has no forms of its own", async () => {
  const commands = ["actions create", "subscriptions", "apply", "publish"];
  const outcomes = await runEach(...commands.map((command) => `${command} --help`));
  const usages = outcomes.map(({ stdout }) =>
    /USAGE\n([^]*?)\n\n/.exec(stdout)?.[1]?.replaceAll(/\s+/g, " "),
  );
  expect(usages).toEqual([
    " $ evreg actions create NAME --application NAME --schema FILE [--mode full|producer|consumer|none]",
    " $ evreg subscriptions [--application NAME] [--action PATTERN] [--[no-]active]",
    expect.stringContaining(" $ evreg apply --file FILE|DIR|-... [--dry-run] [--prune]"),
    expect.stringContaining(" $ evreg publish ACTION PAYLOAD|FILE|- [--idempotency-key KEY] "),
  ]);
});
