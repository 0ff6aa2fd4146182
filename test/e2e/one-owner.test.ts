import { afterAll, beforeAll, expect, test } from "vitest";
import { runProgram, startProgram, temporaryFolder, type RunningProgram } from "../support/program.ts";

// One process owns a data folder; everybody else is told who, or goes through it.

const folder = temporaryFolder();
let server: RunningProgram;

beforeAll(async () => {
  server = await startProgram(folder.path);
});

afterAll(async () => {
  await server?.end("SIGTERM");
  folder.remove();
});

test("a second server on the folder is refused, and the error names the process that holds it", async () => {
  const second = await runProgram(["serve", "--data", folder.path, "--port", "0"], { cwd: folder.path });
  expect(second.code).toBe(5);
  expect(second.stderr).toContain(`process ${server.child.pid}`);
  expect(second.stderr).toContain(server.url);
  expect(second.stdout).toBe("");
});

test("a command on the folder uses the running server, with the folder's token", async () => {
  const schema = '{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}';
  const created = await runProgram(
    [
      "actions",
      "create",
      "order.created",
      "--application",
      "shop",
      "--schema",
      "-",
      "--data",
      folder.path,
      "--json",
    ],
    { cwd: folder.path, input: schema },
  );
  expect(created.code, created.stderr).toBe(0);
  expect(JSON.parse(created.stdout)).toMatchObject({ data: { action: "order.created", revision: 1 } });
  const anonymous = await fetch(`${server.url}/v1/actions`);
  expect(anonymous.status).toBe(401);
});

test("after the server has ended, the same command opens the folder itself", async () => {
  expect((await server.end("SIGTERM")).code).toBe(0);
  const command = ["actions", "get", "order.created", "--data", folder.path, "--json"];
  const found = await runProgram(command, { cwd: folder.path });
  expect(found.code, found.stderr).toBe(0);
  expect(JSON.parse(found.stdout)).toMatchObject({ data: { action: "order.created", revision: 1 } });
});
