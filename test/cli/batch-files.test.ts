import { spawnSync } from "node:child_process";
import { linkSync, statSync, symlinkSync } from "node:fs";
import { expect, test } from "vitest";
import { cleanEnv, startCommand, STARTED_BY } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { post } from "../support/post.ts";
import { register } from "../support/records.ts";
import { until } from "../support/until.ts";
import { useServed } from "../support/served.ts";

const served = useServed(async ({ evreg }) => {
  const schemata = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  for (const action of ["kept", "cut"]) await register(evreg, action, schemata);
});
const { folder, run, at, read, write } = served;

/** What was refused, as it was kept for whoever mends it. */
const refusedIn = (name: string): unknown[] =>
  read(name)
    .trimEnd()
    .split("\n")
    .map((text) => JSON.parse(text) as unknown);

function line(action: string, id: unknown, more = ""): string {
  return `{"action":"${action}","payload":{"id":${JSON.stringify(id)}}${more}}`;
}

async function total(action: string): Promise<number> {
  return (await served.evreg.events.list({ action, limit: 1 })).meta.total;
}

function publishKept(lines: readonly string[], ...more: string[]) {
  write("kept.ndjson", lines.map((one) => `${one}\n`).join(""));
  return run(["publish", "--batch", "kept.ndjson", "--idempotency-key", "kept", ...more]);
}

test("a file with a key can be published again, corrected and longer, and each line is stored once", async () => {
  const own = line("kept", 2, ',"idempotency_key":"mine"');
  const lines = [line("kept", 1), own, "", "not json", line("kept", "five")];
  expect(await publishKept(lines, "--rejects=kept.refused")).toMatchObject({
    code: 7,
    stderr: expect.stringContaining(
      "2 events published, 2 lines refused. Fix those lines and give the same command again; the lines: jq -r .text kept.refused\n",
    ) as string,
  });
  expect(refusedIn("kept.refused")).toEqual([
    { line: 4, code: 400, error: expect.stringContaining("Malformed JSON at column"), text: "not json" },
    { line: 5, code: 422, error: expect.any(String), field: "id", text: line("kept", "five") },
  ]);
  expect(statSync(at("kept.refused")).mode & 0o777).toBe(0o600);

  const mended = [...lines.slice(0, 3), line("kept", 4), line("kept", 5), line("kept", 6)];
  const again = await publishKept(mended, "--concurrency=2", "--rejects=kept.refused");
  expect(again).toMatchObject({ code: 0, stderr: "3 events published, 2 already there, 0 lines refused.\n" });
  expect(read("kept.refused")).toBe("");
  const changed = await publishKept([line("kept", 7), ...mended.slice(1)]);
  expect(changed.code).toBe(7);
  expect(changed.stderr).toMatch(
    /^Line 1: .*another[^]+1 line refused\. It is not the line that .* another --idempotency-key\.\n$/,
  );
  expect(await total("kept")).toBe(5);
});

test("a refused line that is not UTF-8 is kept as base64, and one that is too long is only named", async () => {
  const odd = Buffer.from('{"\u00e9', "latin1");
  write("odd.ndjson", Buffer.concat([odd, Buffer.from(`\n${"x".repeat(17 * 1024 * 1024)}\n`)]));
  expect((await run("publish --batch odd.ndjson --rejects odd.refused")).code).toBe(7);
  expect(refusedIn("odd.refused")).toEqual([
    { line: 1, code: 400, error: expect.any(String), text_base64: odd.toString("base64") },
    { line: 2, code: 413, error: expect.stringContaining("The line is longer than") },
  ]);
});

test("the refused lines never replace the file that is read", async () => {
  symlinkSync(at("kept.ndjson"), at("link"));
  linkSync(at("kept.ndjson"), at("hard-link"));
  const before = read("kept.ndjson");
  for (const name of ["kept.ndjson", "link", "hard-link"]) {
    expect(await run(["publish", "--batch", "kept.ndjson", "--rejects", name])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--batch and --rejects name the same file") as string,
    });
  }
  const command = 'exec "$@" publish --batch - --rejects kept.ndjson < kept.ndjson';
  const { status } = spawnSync("sh", ["-c", command, "sh", ...STARTED_BY], { cwd: folder, env: cleanEnv() });
  expect(status).toBe(2);
  expect(read("kept.ndjson")).toBe(before);
});

async function forward(path: string, body: Buffer): Promise<string> {
  const url = `${served.server.url}${path}`;
  return (await (body.length === 0 ? fetch(url) : post(url, body.toString()))).text();
}

test("an interrupted bulk is finished by the same command, also past a server that asks to wait", async () => {
  const lines = Array.from({ length: 1_200 }, (_, id) => line("cut", id));
  write("cut.ndjson", lines.join("\n"));
  // A proxy that lets one batch through, then asks to wait.
  const proxy = await startReceiver();
  let passed = 0;
  proxy.answer = ({ path, body }) => {
    const isBatch = path.startsWith("/v1/events/batch");
    if (isBatch && passed > 0) {
      const refusal = { error: "Too much.", details: {}, code: 429 };
      return { status: 429, headers: { "retry-after": "60" }, body: JSON.stringify(refusal) };
    }
    if (isBatch) passed += 1;
    const answer = { status: 201, body: "" };
    const after = forward(path, body).then((text) => (answer.body = text));
    return Object.assign(answer, { after });
  };
  const words = ["publish", "--batch", "cut.ndjson", "--idempotency-key", "cut"];
  const bulk = startCommand([...words, "--url", new URL(proxy.url).origin], { cwd: folder });
  await until("it waits", () => bulk.soFar().stderr.includes("Trying again"));
  bulk.child.kill("SIGINT");
  const { code, stderr } = await bulk.ended;
  expect(code).toBe(130);
  await proxy.close();
  expect(stderr).toBe(
    "Too much. Trying again for 2 minutes.\n" +
      "500 events published, 0 lines refused. Interrupted after line 500. Give the same command again: no line is stored twice.\n",
  );
  expect(await run(words)).toMatchObject({
    code: 0,
    stderr: "700 events published, 500 already there, 0 lines refused.\n",
  });
  expect(await total("cut")).toBe(1_200);
});
