import { afterAll, expect, test } from "vitest";
import { transportFindings } from "../../src/app/doctor-findings.ts";
import { startServer } from "../../src/app/server.ts";
import { commandLine } from "../support/command-line.ts";
import { KeptLog } from "../support/kept-log.ts";
import { temporaryFolder } from "../support/program.ts";
import { configFor } from "../support/server.ts";

const folder = temporaryFolder();
const { run } = commandLine(folder.path, {});
afterAll(() => folder.remove());

test.each([
  ["127.0.0.1", {}, false],
  ["localhost", {}, false],
  ["::1", {}, false],
  ["0.0.0.0", {}, true],
  ["::", {}, true],
  ["192.0.2.7", {}, true],
  ["events.example.com", {}, true],
  ["0.0.0.0", { cert: "cert.pem", key: "key.pem" }, false],
])("at the address %s with %o a server is reached without TLS: %s", (host, tls, isReached) => {
  const found = transportFindings(configFor(folder.path, { host, tls }));
  expect(found.map(({ check, status }) => [check, status])).toEqual(
    isReached ? [["transport", "warning"]] : [],
  );
});

test.each([
  ["0.0.0.0", 1],
  ["127.0.0.1", 0],
])("a server at %s without TLS warns in its log and in the doctor: %i times", async (host, times) => {
  const logger = new KeptLog();
  const config = configFor(`${folder.path}/data`, { host });
  const server = await startServer({ config, version: "1", logger });
  try {
    const sentence = "At the address 0.0.0.0 other machines reach the server without TLS";
    expect(logger.with(sentence)).toHaveLength(times);
    const { data: findings } = await server.evreg.doctor();
    expect(findings.filter(({ found }) => found.includes(sentence))).toHaveLength(times);
  } finally {
    await server.stop();
  }
  const words = ["doctor", "--json", "--data", config.data];
  const offline = await run(words, { env: { EVREG_HOST: host } });
  expect(offline.stdout.split("without TLS")).toHaveLength(times + 1);
});

test("the help of serve serves others with TLS only", async () => {
  const { stdout } = await run("serve --help");
  expect(stdout).toMatch(/^.*evreg serve --host 0\.0\.0\.0.*$/m);
  expect(stdout.replaceAll(/\s+/g, " ")).toMatch(
    /For other machines, with tls\.cert and tls\.key .* --host 0\.0\.0\.0/,
  );
  expect(stdout).not.toContain("For others");
  expect(stdout).not.toContain("for others to reach");
});
