import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";

const { run, runEach } = commandLine(tmpdir(), { EVREG_DATA: "/nonexistent/evreg" });

const MISTAKES: readonly (readonly [line: string, named: RegExp])[] = [
  ["bogus", /no command "bogus"; there are: actions, .*publish.*evreg --help/s],
  [
    "actions remove",
    /no command "actions remove"; actions has: check, create, deprecate, .*update, validate/,
  ],
  // A verb that other programs have.
  ["subscriptions pause", /did you mean subscriptions update ID --no-active\?/],
  // One that evreg once had.
  ["trigger x", /did you mean actions sample NAME \| evreg publish NAME -\?/],
  ["events deliveries 7", /did you mean deliveries --event ID\?/],
  ["actions types x", /did you mean actions get NAME --json \| jq .* npx json-schema-to-typescript\?/],
  ["--json actions", /"error":"Name the command before its flags/],
  ["pubilsh a {}", /no command "pubilsh"; did you mean publish\?/],
  // A member of every object.
  ["constructor", /no command "constructor"; there are: /],
  // A hidden command is suggested to nobody.
  ["completed", /no command "completed"; there are: (?!.*complete,)/],
  ["actions lst", /no command "actions lst"; did you mean actions list\?/],
  ["event list", /no command "event"; did you mean events\?/],
  ["--data x events", /, as in evreg events --data FOLDER; evreg --help lists the commands\.\n/],
  ["--bogus", /; evreg --help lists the commands\.\n/],
  ["events --acton x", /no flag --acton here; did you mean --action\?/],
  ["actions --bogus", /no flag --bogus here.*evreg actions --help/s],
  ["events get --bogus one", /no flag --bogus here/],
  // An address with a password, also with a slash in it, and in a wrong place.
  ["events --url https://me:s3cr3t@a.example", /^(?!.*s3cr).*--url: .*without user name/s],
  ["events --url https://me:1/s3cr3t@a.example", /^(?!.*s3cr).*--url: .*without user name/s],
  ["events https://me:s3cr3t@h", /^(?!.*s3cr).*no command "\[redacted\]@h"/s],
  ["completion tcsh", /^Error: "tcsh" is none of bash, zsh, fish\.\nSee: evreg completion --help\n/],
  ["replays cancl 1", /replays cancel\?\nSee: evreg replays --help\n/],
  ["actions get", /Missing: NAME.*evreg actions get --help/s],
  ["events get 1 2", /Too many arguments: 2/],
  ["doctor foo", /Too many arguments: foo\. evreg doctor takes none\.\nSee: evreg doctor --help\n/],
  ["actions list a b", /arguments: a b\. evreg actions list takes none\./],
  ["apply reg", /Too many arguments: reg\. evreg apply takes none\.\n/],
  ["actions create a", /Missing: --application NAME, --schema FILE\.\n/],
  ["actions create", /Missing: NAME \(.*\), --application NAME, --schema FILE\.\n/],
  ["subscriptions create --name x", /Missing: --application NAME, --action PATTERN\.\n/],
  [
    "subscriptions create --name x --application a --action b",
    /handler with --handler URL, or give --mode p/,
  ],
  ["events --action", /--action needs a value\./],
  ["events --order up", /--order: must be one of asc, desc; not "up"\./],
  ["events --limit many", /--limit: takes a whole number, not "many"/],
  // The key of a bulk: empty, as from a variable that is not set; one that no line could have; without room for a number.
  ["publish --batch - --idempotency-key ", /-key: must be 1 to 200 printable ASCII characters with --batch/],
  ["publish --batch - --idempotency-key é", /1 to 200 printable/],
  [`publish --batch - --idempotency-key ${"k".repeat(201)}`, /1 to 200 printable/],
  ["deliveries get first", /ID takes a whole number/],
  ["events --page 2 --after 7", /--after and --page cannot be given together/],
  ["events --url http://127.0.0.1:1 --data x", /--data and --url cannot be given together/],
  ["publish --batch - --atomic --on-error stop", /: --atomic and --on-error cannot be .*; leave one out\.\n/],
  ["tokens create x --scope read --expires tomorrow", /--expires: .*90d.*ISO 8601.*"tomorrow"/],
  ["events --all --json", /--all and --json cannot be given together/],
  ["events --all --output table", /--all prints one record a line/],
  ["publish a {} --timeout 1", /--timeout is only for use with --wait/],
  ["publish a", /Give the payload/],
  ["publish a --batch x", /each line names its own action/],
  ["publish", /Name the action/],
  ["subscriptions update 1", /Nothing to change/],
  ["publish a nowhere.json", /no file nowhere.json/],
  ["publish --batch .", /is a folder/],
  ["help bogus", /no command "bogus".*\nSee: evreg --help\n/s],
  ["publsh -h", /no command "publsh"; did you mean publish\?/],
];

test.each(MISTAKES)(
  "%s is refused as usage: named on stderr, with nothing on stdout",
  async (line, named) => {
    const outcome = await run(line);
    expect(outcome).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(named) });
    expect(outcome.stderr).not.toMatch(/\n +at |node_modules|\[object|Config \{/);
  },
);

test("-h means --help everywhere, and -v means --version", async () => {
  for (const [short, long] of [
    ["-h", "--help"],
    ["actions -h", "actions --help"],
    ["tokens create -h", "tokens create --help"],
    ["-v", "--version"],
  ] as const) {
    const outcome = await run(short);
    expect.soft(outcome, short).toEqual(await run(long));
    expect.soft(outcome.code).toBe(0);
  }
});

test.each([
  ["events --token TOKEN --token-file x", "--token and --token-file cannot be given together"],
  ["events --tokn=TOKEN", "no flag --tokn"],
  ["--token TOKEN events", "Name the command before its flags"],
])("the error about the flags of `%s` repeats no token", async (line, named) => {
  const token = "evreg_thisisnotarealone";
  const outcome = await run(line.replace("TOKEN", token));
  expect(outcome).toMatchObject({ code: 2, stderr: expect.stringContaining(named) });
  expect(outcome.stderr).not.toContain(token);
});

test("with --json or jsonl an error is the API's error body and nothing else, on stderr", async () => {
  const mistakes = ["bogus", "actions --bogus", "events get first"];
  const forms = ["--json", "--output=jsonl", "--output json"];
  const lines = mistakes.flatMap((mistake) => forms.map((form) => `${mistake} ${form}`));
  for (const outcome of await runEach(...lines)) {
    expect(outcome).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/^.+\n$/) });
    expect(JSON.parse(outcome.stderr)).toEqual({ error: expect.any(String), details: {}, code: 400 });
  }
});

test("a word that would control the terminal is escaped", async () => {
  const { stderr } = await run("actions \u001b[2Jx\u0007");
  expect(stderr).toContain("x");
  // oxlint-disable-next-line no-control-regex
  expect(stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
});
