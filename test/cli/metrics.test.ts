import { cpSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { parseMetrics, valueOf } from "../support/prometheus.ts";
import { PROGRAM, startProgram } from "../support/program.ts";
import { publish, register, subscribe } from "../support/records.ts";
import { useServed } from "../support/served.ts";

const served = useServed(async ({ evreg }) => {
  await register(evreg, "order.created");
  await subscribe(evreg, "puller", { mode: "pull" });
  await publish(evreg);
  await evreg.subscriptions.update(1, { active: false });
});
const { at, run, json } = served;

test("metrics prints those of the server, or without one those of the data folder", async () => {
  const asked = parseMetrics((await run("metrics")).stdout);
  expect(valueOf(asked, "evreg_events_published_total", { via: "single" })).toBe(1);
  expect(valueOf(asked, "evreg_engine_running")).toBe(1);
  expect([...parseMetrics((await json<string>("metrics")).data).keys()]).toEqual([...asked.keys()]);
  const alone = parseMetrics((await served.withoutServer(() => run("metrics"))).stdout);
  expect(valueOf(alone, "evreg_backlog_deliveries", { state: "held" })).toBe(1);
  expect(valueOf(alone, "evreg_engine_running")).toBe(0);
});

test("a server answers with its metrics also once its program has been built anew", async () => {
  const [root, copy] = [dirname(dirname(PROGRAM)), at("checkout")];
  for (const name of ["bin", "dist", "package.json", "oclif.manifest.json"]) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const as = [process.execPath, join(copy, "bin/run.js")];
  const server = await startProgram(at("built"), ["--dev"], {}, [], as);
  rmSync(join(copy, "dist"), { recursive: true });
  const answer = await fetch(`${server.url}/metrics`);
  expect([answer.status, await answer.text()]).toEqual([
    200,
    expect.stringContaining("evreg_engine_running 1"),
  ]);
  await server.end("SIGTERM");
});
