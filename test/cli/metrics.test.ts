import { cpSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { parseMetrics, valueOf } from "../support/prometheus.ts";
import { PROGRAM, startProgram, temporaryFolder } from "../support/program.ts";
import { serveHere } from "../support/server.ts";

const folder = temporaryFolder();
const { run } = commandLine(folder.path, { EVREG_DATA: join(folder.path, "data") });
afterAll(() => folder.remove());

test("metrics prints those of the server, or without one those of the data folder", async () => {
  const create = "actions create order.created --application shop --schema -".split(" ");
  await run(create, { input: '{"type": "object"}' });
  const subscribe =
    "subscriptions create --application billing --name invoices --action order.created --handler https://example.com/ --no-active";
  await run(subscribe.split(" "));
  await run("subscriptions update 1 --active");
  await run("publish order.created {}");
  await run("subscriptions update 1 --no-active");

  const alone = parseMetrics((await run("metrics")).stdout);
  expect(valueOf(alone, "evreg_backlog_deliveries", { state: "held" })).toBe(1);
  expect(valueOf(alone, "evreg_engine_running")).toBe(0);

  const server = await serveHere(join(folder.path, "data"), { dev: true });
  try {
    await run("publish order.created {}");
    const asked = parseMetrics((await run("metrics")).stdout);
    expect(valueOf(asked, "evreg_events_published_total", { via: "single" })).toBe(1);
    expect(valueOf(asked, "evreg_engine_running")).toBe(1);
    const { data } = JSON.parse((await run("metrics --json")).stdout) as { data: string };
    expect([...parseMetrics(data).keys()]).toEqual([...asked.keys()]);
  } finally {
    await server.stop();
  }
});

test("a server answers with its metrics also once its program has been built anew", async () => {
  const [root, copy] = [dirname(dirname(PROGRAM)), join(folder.path, "checkout")];
  for (const name of ["bin", "dist", "package.json", "oclif.manifest.json"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const as = [process.execPath, join(copy, "bin/run.js")];
  const server = await startProgram(join(folder.path, "built"), ["--dev"], {}, [], as);
  rmSync(join(copy, "dist"), { recursive: true });
  const answer = await fetch(`${server.url}/metrics`);
  expect([answer.status, await answer.text()]).toEqual([
    200,
    expect.stringContaining("evreg_engine_running 1"),
  ]);
  await server.end("SIGTERM");
});
