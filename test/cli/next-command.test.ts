import { afterEach, expect, test } from "vitest";
import { pageLine } from "../../src/cli/resource-command.ts";
import {
  nextCommand,
  plainCommand,
  serveCommand,
  setTarget,
  withTarget,
} from "../../src/cli/target/next-command.ts";

afterEach(() => setTarget({}));

test("a suggested command is as short as the one typed", () => {
  expect(nextCommand("deliveries get 7")).toBe("evreg deliveries get 7");
  expect(serveCommand()).toBe("evreg serve");
});

test("a suggested command acts on the same target, and contains no token", () => {
  setTarget({ url: "https://events.example.com", token: "evreg_secret" });
  expect(nextCommand("deliveries get 7")).toBe(
    "evreg deliveries get 7 --url https://events.example.com --token TOKEN",
  );
  setTarget({ data: "my data", config: "it's.yaml" });
  expect(nextCommand("events")).toBe(String.raw`evreg events --data 'my data' --config 'it'\''s.yaml'`);
  expect(serveCommand()).toBe(String.raw`evreg serve --data 'my data' --config 'it'\''s.yaml'`);
});

const NPM = ["npm_lifecycle_event", "npm_lifecycle_script", "npm_config_local_prefix"] as const;

test.each([
  [undefined, undefined, undefined, "evreg"],
  ["npx", "'evreg'", process.cwd(), "npx evreg"],
  ["npx", "evreg", "/opt/my checkout", "npx --prefix '/opt/my checkout' evreg"],
  ["npx", "vitest run", process.cwd(), "evreg"],
  ["start", "node bin/run.js serve --dev", process.cwd(), "npx evreg"],
  ["test", "vitest run", process.cwd(), "evreg"],
])("started by npm as %s of %s in %s, it is typed again as it was", (event, script, prefix, name) => {
  const before = NPM.map((variable) => process.env[variable]);
  const set = (values: readonly (string | undefined)[]): void => {
    for (const [index, variable] of NPM.entries()) {
      if (values[index] === undefined) delete process.env[variable];
      else process.env[variable] = values[index];
    }
  };
  try {
    set([event, script, prefix]);
    expect(nextCommand("events")).toBe(`${name} events`);
    expect(plainCommand("help")).toBe(`${name} help`);
  } finally {
    set(before);
  }
});

test("a checkout's entry that was typed by its path is suggested by that path", () => {
  const [, before] = process.argv;
  const typed = process.env["_"];
  try {
    process.argv[1] = "/opt/my evreg/bin/run.js";
    process.env["_"] = "/opt/my evreg/bin/run.js";
    expect(nextCommand("events")).toBe("'/opt/my evreg/bin/run.js' events");
    process.env["_"] = "/usr/bin/node";
    expect(nextCommand("events")).toBe("evreg events");
  } finally {
    process.argv[1] = before!;
    if (typed === undefined) delete process.env["_"];
    else process.env["_"] = typed;
  }
});

test("a suggested restore has its folder and configuration, and no server or token, which it does not take", () => {
  setTarget({ url: "https://events.example.com", token: "evreg_secret", data: "mine", config: "my.yaml" });
  expect(withTarget("Run `evreg restore FILE --force`, or `evreg restore a.db --data other`.")).toBe(
    "Run `evreg restore FILE --force --data mine --config my.yaml`, or `evreg restore a.db --data other --config my.yaml`.",
  );
});

test("commands in a sentence of evreg's act where this one did, unless they name a place", () => {
  setTarget({ data: "mine", token: "evreg_secret" });
  expect(
    withTarget("Run `evreg deliveries get 7`, or `evreg doctor --data other`; see `evreg serve --dev`."),
  ).toBe(
    "Run `evreg deliveries get 7 --token TOKEN --data mine`, or `evreg doctor --data other`; see `evreg serve --dev --data mine`.",
  );
});

const EVENTS = { noun: "event", plural: "events" } as const;

test("the command for the next page repeats the typed flags and continues after the last record", () => {
  const flags = { action: "a.b", json: false, limit: 2, page: 3, after: 10, all: undefined, output: "table" };
  const next = "Next page: evreg events --action a.b --limit 2 --output table --after 8";
  expect(pageLine(EVENTS, flags, { shown: 2, last: 8 })).toBe(`2 events shown. ${next}`);
  expect(pageLine(EVENTS, flags, { shown: 2, total: 1_203, last: 8 })).toBe(
    `2 of 1,203 events shown. ${next}`,
  );
});

test("the command for the next page quotes values for a shell and contains no token", () => {
  const flags = { data: "/my data/it's", action: "$(rm)", token: "evreg_secret" };
  const line = pageLine(EVENTS, flags, { shown: 2, last: 8 });
  expect(line).toContain(String.raw`--data '/my data/it'\''s' --action '$(rm)' --token TOKEN --after 8`);
  expect(line).not.toContain("evreg_secret");
});
