import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { PROGRAM, runProgram } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { useAlone } from "./alone.ts";

// The executable alone in a folder, with an empty PATH, no home and no Node.

const alone = useAlone();
const CHECKOUT = fileURLToPath(new URL("../..", import.meta.url));

/** Spelt as no JSON writer would, so that a payload written anew would show. */
const payload = (last: number): string => `{"id":  "1f0c3e1e-5a4b-4c6e-9d43-00000000000${last}"}`;

test("from nothing to a verified delivery, and on after kill -9", async () => {
  const receiver = await startReceiver();
  let server = await alone.serve();
  const act = async (line: string, input?: string): Promise<any> => {
    const outcome = await alone.run([...line.split(" "), "--data", alone.data, "--json"], {}, input);
    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    return JSON.parse(outcome.stdout);
  };
  const schema = '{"type":"object","required":["id"],"properties":{"id":{"type":"string","format":"uuid"}}}';
  await act("actions create order.created --application shop --schema -", schema);
  const names = "--application billing --subscription invoices --action order.created";
  const { data } = await act(`subscriptions create ${names} --handler ${receiver.url}`);
  await act("publish order.created - --wait", payload(1));

  await server.end("SIGKILL");
  server = await alone.serve();
  await act("publish order.created -", payload(2));
  const requests = await receiver.received(2);
  for (const [at, { body, headers }] of requests.entries()) {
    expect(body.toString()).toContain(`"payload":${payload(at + 1)}`);
    new Webhook(data.secret).verify(body.toString(), { ...headers });
  }
  const refused = await alone.run(["publish", "order.created", '{"id":"x"}', "--data", alone.data]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain("id must be a UUID");
  await until("both to be delivered", async () => {
    const { data: deliveries } = await act("deliveries");
    return deliveries.every((delivery: { status: string }) => delivery.status === "delivered");
  });
  expect((await act("events")).meta.total).toBe(2);
  const copy = join(alone.folder, "copy.db");
  expect((await act(`backup ${copy}`)).data).toMatchObject({ last_event: 2 });
  expect((await act("doctor")).meta.problems).toBe(0);
  expect((await server.end("SIGTERM")).code).toBe(0);
  const restored = join(alone.folder, "restored");
  expect((await alone.run(["restore", copy, "--data", restored])).code).toBe(0);
  const events = await alone.run(["events", "--data", restored, "--json"]);
  expect(JSON.parse(events.stdout)).toMatchObject({ meta: { total: 2 } });
  await receiver.close();
  // The folder by itself, without a server.
  expect((await act("events")).meta.total).toBe(2);
});

test("the page for browsers is inside", async () => {
  const server = await alone.serve();
  const page = await fetch(`${server.url}/`, { headers: { accept: "text/html" } });
  expect({ url: page.url, status: page.status }).toEqual({ url: `${server.url}/ui/`, status: 200 });
  const html = await page.text();
  expect(html).toBe(readFileSync(join(CHECKOUT, "dist/ui/index.html"), "utf8"));
  for (const [, part = ""] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
    for (const encoding of ["gzip", "identity"]) {
      const headers = { "accept-encoding": encoding };
      const got = Buffer.from(await (await fetch(new URL(part, page.url), { headers })).arrayBuffer());
      expect(got.equals(readFileSync(join(CHECKOUT, "dist/ui", part))), `${part}, ${encoding}`).toBe(true);
    }
  }
  expect((await server.end("SIGTERM")).code).toBe(0);
});

test("the executable prints what the installed program does, and suggests commands by its own path", async () => {
  for (const line of ["--version", "--help", "serve --help", "help actions", "pubilsh", []]) {
    const installed = await runProgram(line, { as: [process.execPath, PROGRAM] });
    const { stderr, ...printed } = await alone.run(line, { NO_COLOR: "1" });
    expect({ ...printed, stderr: stderr.replaceAll(alone.executable, "evreg") }).toEqual(installed);
  }
});

test("the checksum file matches, and the executable contains no path of its build", () => {
  const built = process.env["TEST_EXECUTABLE"] ?? "";
  const content = readFileSync(built);
  const hash = createHash("sha256").update(content).digest("hex");
  expect(readFileSync(`${built}.sha256`, "utf8")).toBe(`${hash}  evreg\n`);
  for (const place of [CHECKOUT, "evreg-build-"]) expect(content.includes(place), place).toBe(false);
});

test("the server keeps its process and its arguments", async () => {
  const server = await alone.serve();
  expect(readFileSync(`/proc/${server.child.pid}/cmdline`, "utf8").split("\0").slice(0, 2)).toEqual([
    alone.executable,
    "serve",
  ]);
  expect((await server.end("SIGTERM")).stderr).not.toContain("Warning");
});

test("nothing from outside runs: neither what Node's variables name, nor what is in the working directory", async () => {
  const told = join(alone.folder, "told");
  const code = `require("node:fs").writeFileSync(${JSON.stringify(told)}, __filename)`;
  writeFileSync(join(alone.folder, "outside.cjs"), code);
  for (const folder of [alone.folder, alone.data]) {
    for (const name of ["bufferutil", "utf-8-validate", "pino-pretty", "@libsql/linux-x64-gnu", "ts-node"]) {
      const path = join(folder, "node_modules", name, "index.js");
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, code);
    }
  }
  const env = { NODE_OPTIONS: `--require=${join(alone.folder, "outside.cjs")}`, NODE_PATH: alone.folder };
  expect((await alone.run(["--version"], env)).code).toBe(0);
  const server = await alone.serve(env);
  expect((await alone.run(["actions", "--data", alone.data], env)).code).toBe(0);
  expect((await server.end("SIGTERM")).code).toBe(0);
  expect(() => readFileSync(told)).toThrow("ENOENT");
});

test.skipIf(spawnSync("strace", ["-V"]).status !== 0)("no file of the checkout is looked at", async () => {
  const log = join(alone.folder, "strace");
  // With -D the program keeps the number that its parent knows.
  const server = await alone.serve({}, ["strace", "-D", "-f", "-e", "trace=%file", "-o", log]);
  await server.end("SIGTERM");
  await until("the last line", () => /exited with 0/.test(readFileSync(log, "utf8")));
  const paths = readFileSync(log, "utf8");
  expect(paths).toContain(alone.data);
  expect(paths).not.toContain(CHECKOUT);
});
