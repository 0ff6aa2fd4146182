import { expect, test } from "vitest";
import { runProgram } from "../support/program.ts";
import { runMany } from "../support/run-many.ts";

const MISTAKES: readonly (readonly [string, readonly string[], RegExp])[] = [
  ["an unknown command", ["bogus"], /no command "bogus"; there are: actions, .*publish.*evreg --help/s],
  [
    "an unknown verb",
    ["actions", "remove"],
    /no command "actions remove"; actions has: check, create, deprecate, diff, get, history, list, retire, sample, types, update/,
  ],
  [
    "a verb that other programs have",
    ["subscriptions", "pause"],
    /did you mean subscriptions update ID --no-active\?/,
  ],
  ["flags before the command", ["--json", "actions"], /"error":"Name the command before its flags/],
  ["a mistyped command", ["pubilsh", "a", "{}"], /no command "pubilsh"; did you mean publish\?/],
  ["a command mistyped as a hidden one", ["completed"], /no command "completed"; there are: (?!.*complete,)/],
  ["a mistyped verb", ["actions", "lst"], /no command "actions lst"; did you mean actions list\?/],
  ["a mistyped topic", ["event", "list"], /no command "event"; did you mean events\?/],
  [
    "flags with values before the command",
    ["--data", "x", "events"],
    /, as in evreg events --data FOLDER; evreg --help lists the commands\.\n/,
  ],
  ["a flag and no command", ["--bogus"], /; evreg --help lists the commands\.\n/],
  ["a mistyped flag", ["events", "--acton", "x"], /no flag --acton here; did you mean --action\?/],
  ["an unknown flag", ["actions", "--bogus"], /no flag --bogus here.*evreg actions --help/s],
  [
    "an unknown flag before a word it was to take",
    ["events", "get", "--bogus", "one"],
    /no flag --bogus here/,
  ],
  [
    "an address with a password",
    ["events", "--url", "https://me:s3cr3t@a.example"],
    /^(?!.*s3cr).*https:.*d\]@a\./s,
  ],
  [
    "one with a slash in it",
    ["events", "--url", "https://me:1/s3cr3t@a.example"],
    /^(?!.*s3cr).*https:.*d\]@a\./s,
  ],
  [
    "one of a context",
    ["context", "add", "x", "--url", "https://me:s3cr3t@h"],
    /^(?!.*s3cr).*no user.*h\/\.\n/s,
  ],
  ["one in a wrong place", ["events", "https://me:s3cr3t@h"], /^(?!.*s3cr).*no command "\[redacted\]@h"/s],
  [
    "a shell that there is no script for",
    ["completion", "tcsh"],
    /^Error: "tcsh" is none of bash, zsh, fish\.\nSee: evreg completion --help\n/,
  ],
  ["a verb mistyped behind a topic", ["service", "sytemd"], /service systemd\?\nSee: evreg service --help\n/],
  ["a missing argument", ["actions", "get"], /Missing: NAME.*evreg actions get --help/s],
  ["an argument too many", ["events", "get", "1", "2"], /Too many arguments: 2/],
  [
    "an argument for a command without any",
    ["doctor", "foo"],
    /Too many arguments: foo\. evreg doctor takes none\.\nSee: evreg doctor --help\n/,
  ],
  ["one behind a verb", ["actions", "list", "a", "b"], /arguments: a b\. evreg actions list takes none\./],
  ["a file without its flag", ["apply", "reg"], /Too many arguments: reg\. evreg apply takes none\.\n/],
  ["missing flags", ["actions", "create", "a"], /Missing: --application NAME, --schema FILE\.\n/],
  [
    "an argument and flags",
    ["actions", "create"],
    /Missing: NAME \(.*\), --application NAME, --schema FILE\.\n/,
  ],
  [
    "flags with one there",
    ["subscriptions", "create", "--name", "x"],
    /Missing: --application NAME, --action PATTERN\.\n/,
  ],
  [
    "no handler, and no word that none is wanted",
    ["subscriptions", "create", "--name", "x", "--application", "a", "--action", "b"],
    /Name the handler with --handler URL, or give --mode pull\./,
  ],
  ["a flag without its value", ["events", "--action"], /--action needs a value\./],
  [
    "a value that is none of those",
    ["events", "--order", "up"],
    /--order: must be one of asc, desc; not "up"\./,
  ],
  ["text for a number", ["events", "--limit", "many"], /--limit: takes a whole number, not "many"/],
  [
    "requests that are too many",
    ["publish", "--batch", "-", "--concurrency", "33"],
    /from 1 to 32, not 33\./,
  ],
  [
    "several requests that must stop at a line",
    ["publish", "--batch", "-", "--on-error", "stop", "--concurrency", "2"],
    /leave --concurrency out/,
  ],
  [
    "a key of a bulk that is empty, as from a variable that is not set",
    ["publish", "--batch", "-", "--idempotency-key", ""],
    /--idempotency-key: must be 1 to 200 printable ASCII characters with --batch/,
  ],
  [
    "one that no line could have",
    ["publish", "--batch", "-", "--idempotency-key", "é"],
    /1 to 200 printable/,
  ],
  [
    "one that leaves no room for a number",
    ["publish", "--batch", "-", "--idempotency-key", "k".repeat(201)],
    /1 to 200 printable/,
  ],
  ["text for an id", ["deliveries", "get", "first"], /ID takes a whole number/],
  [
    "flags that exclude each other",
    ["events", "--page", "2", "--after", "7"],
    /--after and --page cannot be given together/,
  ],
  [
    "an address and a folder",
    ["events", "--url", "http://127.0.0.1:1", "--data", "x"],
    /--data and --url cannot be given together/,
  ],
  [
    "--atomic and a rule for errors",
    ["publish", "--batch", "-", "--atomic", "--on-error", "stop"],
    /Error: --atomic and --on-error cannot be given together; leave one out\.\n/,
  ],
  [
    "a scope that is none",
    ["tokens", "create", "x", "--scope", "foo"],
    /--scope: publish, read, listen, write or admin, each optionally limited as publish:APPLICATION; not "foo"/,
  ],
  [
    "an end that is no time",
    ["tokens", "create", "x", "--scope", "read", "--expires", "tomorrow"],
    /--expires: .*90d.*ISO 8601.*"tomorrow"/,
  ],
  ["--all as one document", ["events", "--all", "--json"], /--all and --json cannot be given together/],
  ["--all as a table", ["events", "--all", "--output", "table"], /--all prints one record a line/],
  [
    "a flag that needs another",
    ["publish", "a", "{}", "--timeout", "1"],
    /--timeout is only for use with --wait/,
  ],
  ["no payload", ["publish", "a"], /Give the payload/],
  ["two payloads", ["publish", "a", "{}", "--file", "x"], /not both/],
  ["an action beside a batch", ["publish", "a", "--batch", "x"], /each line names its own action/],
  ["nothing to publish", ["publish"], /Name the action/],
  ["nothing to change", ["subscriptions", "update", "1"], /Nothing to change/],
  ["a file that is not there", ["publish", "a", "--file", "nowhere.json"], /no file nowhere.json/],
  ["a folder for a file", ["publish", "--batch", "."], /is a folder/],
  ["help for no command", ["help", "bogus"], /no command "bogus".*\nSee: evreg --help\n/s],
  ["help for a mistyped command", ["publsh", "-h"], /no command "publsh"; did you mean publish\?/],
];

const NOWHERE = { env: { EVREG_DATA: "/nonexistent/evreg" } };

test("every usage error ends with 2, is named on stderr, and leaves stdout empty", async () => {
  const outcomes = await runMany(
    MISTAKES.map(([, args]) => args),
    NOWHERE,
  );
  for (const [at, [mistake, , named]] of MISTAKES.entries()) {
    const outcome = outcomes[at];
    expect.soft(outcome, mistake).toMatchObject({ code: 2, stdout: "" });
    expect.soft(outcome?.stderr, mistake).toMatch(named);
    expect.soft(outcome?.stderr, mistake).not.toMatch(/\n +at |node_modules|\[object|Config \{/);
  }
});

test("-h means --help everywhere, and -v means --version", async () => {
  const pairs = [
    [["-h"], ["--help"]],
    [
      ["actions", "-h"],
      ["actions", "--help"],
    ],
    [
      ["tokens", "create", "-h"],
      ["tokens", "create", "--help"],
    ],
    [["-v"], ["--version"]],
  ];
  const outcomes = await runMany(pairs.flat(), NOWHERE);
  for (const [at, [short]] of pairs.entries()) {
    expect.soft(outcomes[2 * at], short?.join(" ")).toEqual(outcomes[2 * at + 1]);
    expect.soft(outcomes[2 * at]?.code).toBe(0);
  }
});

test("an error about flags repeats no token", async () => {
  const token = "evreg_thisisnotarealone";
  const outcomes = await runMany(
    [
      ["events", "--token", token, "--token-file", "x"],
      ["events", `--tokn=${token}`],
      ["--token", token, "events"],
    ],
    NOWHERE,
  );
  expect(outcomes[0]?.stderr).toContain("--token and --token-file cannot be given together");
  expect(outcomes[2]?.stderr).toContain("Name the command before its flags");
  for (const { code, stderr } of outcomes) {
    expect(code).toBe(2);
    expect(stderr).not.toContain(token);
  }
});

test("the program itself ends with these codes too", async () => {
  expect(await runProgram(["actions", "--bogus"])).toMatchObject({
    code: 2,
    stdout: "",
    stderr: "Error: There is no flag --bogus here.\nSee: evreg actions --help\n",
  });
});

test("with --json or jsonl an error is the API's error body and nothing else, on stderr", async () => {
  const mistakes = [["bogus"], ["actions", "--bogus"], ["events", "get", "first"]];
  const forms = [["--json"], ["--output=jsonl"], ["--output", "json"]];
  const commands = mistakes.flatMap((words) => forms.map((form) => words.concat(form)));
  for (const outcome of await runMany(commands, NOWHERE)) {
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(JSON.parse(outcome.stderr)).toEqual({ error: expect.any(String), details: {}, code: 400 });
    expect(outcome.stderr.trimEnd()).not.toContain("\n");
  }
});

test("a word that would control the terminal is escaped", async () => {
  const [outcome] = await runMany([["actions", "\u001b[2Jx\u0007"]], NOWHERE);
  expect(outcome?.stderr).toContain("x");
  // oxlint-disable-next-line no-control-regex
  expect(outcome?.stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
});
