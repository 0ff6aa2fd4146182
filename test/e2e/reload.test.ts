import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";

const folder = temporaryFolder();
afterAll(() => folder.remove());

test("SIGHUP reloads the log level, and a mistake in the file changes nothing", async () => {
  const config = join(folder.path, "evreg.yaml");
  writeFileSync(config, "log:\n  level: info\n");
  const server = await startProgram(folder.path, ["--config", config]);
  let log = "";
  server.child.stderr?.on("data", (chunk: Buffer) => (log += chunk.toString()));
  const told = (what: string): Promise<void> => until(what, () => log.includes(what));

  writeFileSync(config, "log:\n  level: loud\n");
  server.child.kill("SIGHUP");
  await told("Nothing was taken up again");
  expect(log).toContain("must be one of debug, info");

  writeFileSync(config, "log:\n  level: debug\n");
  server.child.kill("SIGHUP");
  await told("were taken up again");
  await fetch(`${server.url}/health`);
  await told('"path":"/health"');
  expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
});
