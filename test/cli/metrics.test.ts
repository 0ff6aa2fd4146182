import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { parseMetrics, valueOf } from "../support/prometheus.ts";
import { copyOfBuild, startProgram } from "../support/program.ts";
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
  const server = await startProgram(at("built"), ["--dev"], {}, [], copyOfBuild(at("checkout")));
  rmSync(at("checkout/dist"), { recursive: true });
  const answer = await fetch(`${server.url}/metrics`);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toContain("evreg_engine_running 1");
  await server.end("SIGTERM");
});
