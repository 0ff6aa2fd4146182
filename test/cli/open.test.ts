import { existsSync, mkdirSync } from "node:fs";
import { delimiter } from "node:path";
import { expect, test } from "vitest";
import type { Outcome } from "../support/program.ts";
import { serveHere } from "../support/server.ts";
import { useServed } from "../support/served.ts";

const served = useServed(undefined, { dev: false });
const { at, read, write, run, expectEach } = served;
const begins = (text: string): boolean => text.startsWith(`${served.server.url}/ui/#code=`);

/** With a program in the place of the one that opens addresses, which writes down what it is given. */
async function openWith(script: string): Promise<Outcome & { seen: string }> {
  const text = `#!/bin/sh\nprintf '%s\\n' "$@" > '${at("seen")}'\n${script}\n`;
  for (const name of ["xdg-open", "open"]) write(`bin/${name}`, text, 0o755);
  const env = { PATH: `${at("bin")}${delimiter}${process.env["PATH"]}`, SSH_CONNECTION: "" };
  const outcome = await run("open", { env });
  return { ...outcome, seen: existsSync(at("seen")) ? read("seen") : "" };
}

const codeIn = (text: string): string => /#code=([0-9A-Za-z]{38})\n/.exec(text)?.[1] ?? "";

test("opens the page with a code, which it prints nowhere", async () => {
  const { code, stdout, stderr, seen } = await openWith("exit 0");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  expect(begins(seen)).toBe(true);
  expect(stderr).toBe(`Opened ${served.server.url}/ui/ in the browser.\n`);
  const { data: given } = await served.evreg.tokens.exchangeCode({ code: codeIn(seen) });
  expect(given).toMatchObject({ name: "browser", scopes: ["admin"] });
});

test("prints the address where no browser is, or none is asked for", async () => {
  const failed = await openWith("exit 3");
  expect(failed.code).toBe(0);
  expect(failed.stderr).toMatch(/^No browser could be opened here\..+\nIt signs a browser in, once, until /);
  expect(failed.stdout).toBe(failed.seen);
  const { code, stdout, stderr } = await run("open --no-browser");
  expect([code, begins(stdout)]).toEqual([0, true]);
  expect(stderr).toMatch(/^It signs a browser in, once, until \d{4}-/);
  await served.evreg.tokens.exchangeCode({ code: codeIn(stdout) });
});

test("tells programs the address", async () => {
  for (const format of ["json", "jsonl"]) {
    const { stdout, stderr } = await run(["open", "--no-browser", "--output", format]);
    const document = JSON.parse(stdout) as { data?: object };
    expect(document.data ?? document).toEqual({
      url: expect.stringMatching(/\/ui\/#code=[0-9A-Za-z]{38}$/),
      expires_at: expect.stringMatching(/Z$/),
      opened: false,
    });
    expect(stderr).toBe("");
  }
});

test("gives what the token of the command may do, at whatever server", async () => {
  const { token } = (await served.evreg.tokens.create({ name: "narrow", scopes: ["read:shop"] })).data;
  const { stdout } = await run(`open --no-browser --url ${served.server.url}/ --token ${token}`);
  expect(begins(stdout)).toBe(true);
  const { data: given } = await served.evreg.tokens.exchangeCode({ code: codeIn(stdout) });
  expect(given.scopes).toEqual(["read:shop"]);
});

test("needs no code where no token is needed, and says where there is no page and no server", async () => {
  for (const name of ["open", "without"]) mkdirSync(at(name), { mode: 0o700 });
  const open = await serveHere(at("open"), { dev: true });
  const without = await serveHere(at("without"), { changes: { ui: { enabled: false } } });
  await expectEach([
    ["open --no-browser --data open", 0, `${open.url}/ui/\n`, ""],
    ["open --data without", 5, "", /ui\.enabled/],
  ]);
  await Promise.all([open.stop(), without.stop()]);
  await expectEach([["open --data open", 2, "", /needs a server/]]);
});
