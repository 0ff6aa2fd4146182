import { expect, test } from "vitest";
import { HELP_TOPICS, helpOn } from "../../src/cli/help-topics.ts";
import { EXIT } from "../../src/cli/usage-errors.ts";
import { ATTEMPT_ERROR_CODES, DELIVERY_STATUSES, TLS_REASONS } from "../../src/model/delivery.ts";
import { EXIT_CODE } from "../../src/domain/error.ts";
import { tmpdir } from "node:os";
import { commandLine } from "../support/command-line.ts";

const { runEach, expectEach } = commandLine(tmpdir(), {});

test.each(HELP_TOPICS)("help on %s fits into the width", (topic) => {
  for (const line of helpOn(topic, 80).split("\n")) expect(line.length, line).toBeLessThanOrEqual(80);
  for (const line of helpOn(topic, 40).split("\n")) expect(line.length, line).toBeLessThanOrEqual(54);
});

test("the exit codes listed are all there are, each with a meaning", () => {
  const told = [...helpOn("exit-codes", 80).matchAll(/^ {2,4}(\d+) {2}\S/gm)].map(([, code]) => Number(code));
  const known = new Set<number>([...Object.values(EXIT), ...Object.values(EXIT_CODE)]);
  expect(told).toEqual([...known].toSorted((a, b) => a - b));
});

test("every state and error code of a delivery has a meaning", () => {
  const text = helpOn("delivery-states", 80);
  const told = [...text.matchAll(/^ {2}([a-z_]+)\n {6}\S/gm)].map(([, name]) => name);
  expect(told).toEqual([...DELIVERY_STATUSES, ...ATTEMPT_ERROR_CODES]);
});

test("every reason why TLS fails has a remedy", () => {
  const text = helpOn("delivery-states", 80).replaceAll(/\s+/g, " ");
  for (const reason of TLS_REASONS) expect(text).toMatch(new RegExp(`\\b${reason} \\([a-z]`));
});

test("help exists for commands, topics of commands and topics of its own", async () => {
  await expectEach([
    ["help exit-codes", 0, helpOn("exit-codes", 80), ""],
    ["help exit-code", 2, "", /evreg help has: delivery-states, exit-codes\./],
    ["help tokens create", 0, /^Create a token\./],
    ["help help", 0, /help \[COMMAND \| TOPIC\]/],
    ["help exit-codes delivery-states", 2, "", /One topic at a time/],
    ["help nosuch", 2, "", /tokens, trigger, whoami\./],
    ["help -n", 0, /tokens revoke/],
  ]);
  const [commands, flagged, none, root] = await runEach(
    "help tokens",
    "tokens --help",
    "help nosuch",
    "help",
  );
  expect(commands?.stdout).toContain("tokens revoke");
  expect(commands).toEqual(flagged);
  for (const name of HELP_TOPICS) expect(none?.stderr).toContain(name);
  for (const name of HELP_TOPICS)
    expect(root?.stdout.replaceAll(/\s+/g, " ")).toContain(`evreg help ${name}`);
  expect(root?.stdout).not.toContain("tokens revoke");
});

test("the usage is made of a command's arguments and flags, where it has no forms of its own", async () => {
  const commands = ["actions create", "subscriptions", "apply", "publish"];
  const outcomes = await runEach(...commands.map((command) => `${command} --help`));
  const usages = outcomes.map(({ stdout }) =>
    /USAGE\n([^]*?)\n\n/.exec(stdout)?.[1]?.replaceAll(/\s+/g, " "),
  );
  expect(usages).toEqual([
    " $ evreg actions create NAME --application NAME --schema FILE [--mode full|producer|consumer|none] [--against last|all]",
    " $ evreg subscriptions [--application NAME] [--action PATTERN] [--[no-]active]",
    expect.stringContaining(" $ evreg apply --file FILE|DIR|-... [--dry-run] [--exit-code] [--prune]"),
    expect.stringContaining(" $ evreg publish ACTION --file FILE|- $ evreg publish --batch FILE|- "),
  ]);
});
