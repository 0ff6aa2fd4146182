import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { announcement } from "../../src/cli/serve-announcement.ts";
import { runProgram, startProgram, temporaryFolder } from "../support/program.ts";

test("away from a terminal the server writes log lines only, to stderr, and ends with 0 when told to stop", async () => {
  const folder = temporaryFolder();
  const server = await startProgram(folder.path, ["--dev"]);
  const { code, stdout, stderr } = await server.end("SIGTERM");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  const lines = stderr
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines).toContainEqual(
    expect.objectContaining({ msg: "listening", url: server.url, data: folder.path }),
  );
  expect(lines.at(-1)).toMatchObject({ msg: "stopped" });
  folder.remove();
});

test("--dev is refused where others could reach it, and a taken port is named", async () => {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  const server = await startProgram(one.path, ["--dev"]);
  const { port } = new URL(server.url);
  const [open, taken] = await Promise.all([
    runProgram(["serve", "--dev", "--host", "0.0.0.0", "--data", join(one.path, "x")]),
    runProgram(["serve", "--data", other.path, "--port", port]),
  ]);
  expect(open).toMatchObject({ code: 2, stdout: "" });
  expect(existsSync(join(one.path, "x"))).toBe(false);
  expect(taken).toMatchObject({ code: 5, stdout: "" });
  expect(taken.stderr).toContain(port);
  await server.end("SIGTERM");
  for (const folder of [one, other]) folder.remove();
});

const ABOUT = {
  version: "1.2.3",
  url: "http://127.0.0.1:7480",
  data: "/srv/shop/.evreg",
  dev: false,
  tokenFile: "/srv/shop/.evreg/token",
  hasActions: false,
  cwd: "/srv/shop",
  program: "evreg",
};

test("a terminal is told address, data folder, where the token is, and a command to type next", () => {
  const text = announcement(ABOUT);
  for (const part of [ABOUT.url, ABOUT.data, ABOUT.tokenFile, "evreg actions create order.created"]) {
    expect(text).toContain(part);
  }
  expect(text).not.toContain("--data");
});

test("the next command fits the place: elsewhere it names the data folder, and in a checkout it runs", () => {
  const text = announcement({
    ...ABOUT,
    cwd: "/home/me",
    data: "/srv/it's",
    program: "npx evreg",
    hasActions: true,
  });
  expect(text).toContain("npx evreg events --data '/srv/it'\\''s'");
  expect(announcement({ ...ABOUT, tokenFile: undefined, dev: true })).toMatch(/token +none needed/);
});
