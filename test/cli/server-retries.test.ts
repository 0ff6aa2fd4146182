import { expect, test } from "vitest";
import { useFolder } from "../support/command-line.ts";

const { run, json, expectEach, write } = useFolder();
const configure = (delivery: string) => write("evreg.config.yaml", `delivery: { ${delivery} }\n`);

const subscribe = (name: string, more = "") =>
  `subscriptions create --application billing --subscription ${name} --action order.created --handler https://a.example/h${more}`;
const SCHEDULE = "retrySchedule: [0s, 5s, 1m, 10m, 1h, 6h]";

test("the configuration sets the retries of subscriptions that say nothing else, and each is told its last retry", async () => {
  configure(SCHEDULE);
  write("any.json", "{}");
  const { data: shown } = await json<{ key: string; value: unknown }[]>("config");
  const { value } = shown.find(({ key }) => key === "delivery.retrySchedule")!;
  expect(value).toEqual(["0s", "5s", "1m", "10m", "1h", "6h"]);
  const update = "subscriptions update billing";
  const last = "6 retries, the last 7 h 11 min after the first attempt";
  const ordered =
    /delivery\.retrySchedule\)\. What has used up its retries blocks those behind it and is tried until it is delivered or skipped \(--on-exhausted\)\.\n/;
  await expectEach([
    ["actions create order.created --application shop --schema any.json", 0],
    [subscribe("usual"), 0, /^Retries +6$/m, new RegExp(`${last} \\(`)],
    [subscribe("own", " --retry-schedule 1s,2s"), 0, undefined, /2 retries, the last 3 s after the first/],
    [`${update}/own --max-retries 3`, 0, undefined, /3 retries, the last 5 s after the first attempt \(/],
    [`${update}/own --no-active`, 0, undefined, /^(?!.*retries)/s],
    ["whoami", 0, new RegExp(last)],
    [subscribe("none", " --max-retries 0"), 0, undefined, /What fails has no retries \(--max-retries/],
    [subscribe("ordered", " --ordered --retry-schedule 0s,2s"), 0, undefined, ordered],
    [`${update}/ordered --on-exhausted skip`, 0, undefined, /^What fails is tried again: .*Schedule\)\.\n$/],
    ["subscriptions delete billing/ordered --yes", 0],
  ]);
  expect((await json<{ retries: unknown }>("whoami")).data.retries).toEqual({
    max_retries: 6,
    retry_schedule: [0, 5_000, 60_000, 600_000, 3_600_000, 21_600_000],
  });
});

test("files that leave retries out mean the server's, in a plan and an export", async () => {
  write("all.yaml", (await run("export")).stdout);
  await expectEach([["apply -f all.yaml --dry-run", 0, "Nothing to do; 4 unchanged.\n"]]);
  configure("maxRetries: 9");
  await expectEach([
    ["apply -f all.yaml --dry-run", 0, /subscription billing\/usual to order\.created: max_retries 6 → 9/],
    ["subscriptions get billing/usual --json", 0, /"max_retries":6/],
  ]);
});
