import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());
const { run, json } = commandLine(folder.path, {});
const configure = (delivery: string) =>
  writeFileSync(join(folder.path, "evreg.config.yaml"), `delivery: { ${delivery} }\n`);

const subscribe = (name: string, ...more: readonly string[]) =>
  `subscriptions create --application billing --subscription ${name} --action order.created --handler https://a.example/h`
    .split(" ")
    .concat(more);

test("the configuration sets the retries of subscriptions that say nothing else, and each is told its last retry", async () => {
  configure("retrySchedule: [0s, 5s, 1m, 10m, 1h, 6h]");
  writeFileSync(join(folder.path, "any.json"), "{}");
  const shown = await json<{ key: string; value: unknown }[]>("config");
  expect(shown.data.find(({ key }) => key === "delivery.retrySchedule")?.value).toEqual([
    "0s",
    "5s",
    "1m",
    "10m",
    "1h",
    "6h",
  ]);
  await run("actions create order.created --application shop --schema any.json");
  const usual = await run(subscribe("usual"));
  expect(usual.stdout).toMatch(/^Retries +6$/m);
  expect(usual.stderr).toContain("6 retries, the last 7 h 11 min after the first attempt (");
  const own = await run(subscribe("own", "--retry-schedule", "1s,2s"));
  expect(own.stderr).toContain("2 retries, the last 3 s after the first attempt (");
  const changed = await run("subscriptions update billing/own --max-retries 3");
  expect(changed.stderr).toContain("3 retries, the last 5 s after the first attempt (");
  const paused = await run("subscriptions update billing/own --no-active");
  expect(paused.stderr).not.toContain("retries");
  expect((await json<{ retries: unknown }>("whoami")).data.retries).toEqual({
    max_retries: 6,
    retry_schedule: [0, 5_000, 60_000, 600_000, 3_600_000, 21_600_000],
    disable_after_ms: 432_000_000,
  });
  expect((await run("whoami")).stdout).toContain("6 retries, the last 7 h 11 min after the first attempt");
  const none = await run(subscribe("none", "--max-retries", "0"));
  expect(none.stderr).toContain("What fails is not tried again (--max-retries");
  const ordered = await run(subscribe("ordered", "--ordered", "--retry-schedule", "0s,2s"));
  expect(ordered.stderr).toContain(
    "delivery.retrySchedule). What has used up its retries blocks those behind it and is tried until it is delivered or skipped (--on-exhausted); its waits go on to the last of the schedule, 2 s.\n",
  );
  const skips = await run("subscriptions update billing/ordered --on-exhausted skip");
  expect(skips.stderr).toMatch(/^What fails is tried again: .* delivery\.retrySchedule\)\.\n$/);
  await run("subscriptions delete billing/ordered --yes");
});

test("retries that come after the subscription is deactivated are pointed out", async () => {
  configure("retrySchedule: [1h, 7d], disableAfter: 5d");
  const ends =
    "Where every attempt fails for 5 d (delivery.disableAfter), the subscription is deactivated before the last retry.";
  const checked = await run("config check evreg.config.yaml");
  expect(checked).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      `Warning: delivery.retrySchedule: 2 retries, the last 7 d 1 h after the first attempt. ${ends}`,
    ),
  });
  expect((await run(subscribe("late"))).stderr).toContain(`delivery.retrySchedule). ${ends}`);
  expect((await run(subscribe("early", "--retry-schedule", "1s,2s"))).stderr).not.toContain("deactivated");
  configure("retrySchedule: [1h, 7d], disableAfter: off");
  expect((await run("config check evreg.config.yaml")).stderr).toBe("No mistakes.\n");
  configure("retrySchedule: [0s, 5s, 1m, 10m, 1h, 6h]");
});

test("files that leave retries out mean the server's, in a plan and an export", async () => {
  await run("export --output-file all.yaml");
  const plan = await run("apply -f all.yaml --dry-run --exit-code");
  expect(plan).toMatchObject({ code: 0, stdout: expect.stringContaining("6 unchanged") });
  configure("maxRetries: 9");
  const other = await run("apply -f all.yaml --dry-run");
  expect(other.stdout).toContain("subscription billing/usual to order.created: max_retries 6 → 9");
  expect((await json<{ max_retries: number }>("subscriptions get billing/usual")).data.max_retries).toBe(6);
});
