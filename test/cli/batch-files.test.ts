import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { NewEvent } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { cleanEnv, PROGRAM } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { useServed } from "./served.ts";

const served = useServed(async ({ evreg }) => {
  const schemata = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  for (const action of ["kept", "cut"]) {
    await evreg.actions.create({ action, application: "shop", schemata });
  }
});
const { folder, data, run } = served;
const at = (name: string): string => join(folder, name);

function line(action: string, id: unknown, more = ""): string {
  return `{"action":"${action}","payload":{"id":${JSON.stringify(id)}}${more}}`;
}

async function total(action: string): Promise<number> {
  return (await served.evreg.events.list({ action, limit: 1 })).meta.total;
}

function bulk(...more: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return run(["publish", "--batch", "kept.ndjson", ...more]);
}

test("events counted in a checkpoint are not published again, with the checkpoint or without", async () => {
  const own = line("kept", 2, ',"idempotency_key":"mine"');
  writeFileSync(at("kept.ndjson"), `${line("kept", 1)}\n${own}\n\nnot json\n${line("kept", "five")}`);
  const [checkpoint, rejects] = ["--checkpoint=kept.checkpoint", "--rejects=kept.refused"];
  expect(await bulk(checkpoint, rejects)).toMatchObject({
    code: 7,
    stderr: expect.stringContaining(
      "2 events published, 2 lines refused. Fix those lines and publish them separately; the lines: jq -r .text kept.refused\n",
    ) as string,
  });
  expect(await bulk(checkpoint, rejects, "--json")).toEqual({
    code: 0,
    stdout: '{"meta":{"accepted":0,"published":0,"rejected":0,"replayed":0}}\n',
    stderr: "",
  });
  expect((await bulk(checkpoint, rejects)).stderr).toMatch(
    /^Nothing was left to publish: kept\.checkpoint says that this file is done\.$/m,
  );
  const again = await bulk("--checkpoint=another.checkpoint", "--concurrency=2");
  expect(again.stderr).toMatch(/^0 events published, 2 already there, 2 lines refused\./m);
  expect(await total("kept")).toBe(2);
});

test("refused lines are saved with number, reason, field and text, for their owner only", () => {
  const refused = readFileSync(at("kept.refused"), "utf8").trimEnd().split("\n");
  expect(refused.map((text) => JSON.parse(text) as unknown)).toEqual([
    { line: 4, code: 400, error: expect.stringContaining("Malformed JSON at column"), text: "not json" },
    { line: 5, code: 422, error: expect.any(String), field: "id", text: line("kept", "five") },
  ]);
  expect(statSync(at("kept.refused")).mode & 0o777).toBe(0o600);
  expect(statSync(at("kept.checkpoint")).mode & 0o777).toBe(0o600);
});

async function forward(path: string, body: Buffer): Promise<string> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${served.server.url}${path}`, {
    ...(body.length === 0 ? {} : { method: "POST", body: new Uint8Array(body) }),
    headers,
  });
  return response.text();
}

function keys(): string {
  return `bulk:${(JSON.parse(readFileSync(at("cut.checkpoint"), "utf8")) as { seed: string }).seed}`;
}

function keyed(text: string, key: string): NewEvent {
  const { action, payload } = JSON.parse(text) as { action: string; payload: unknown };
  return { action, payload: RawJson.fromValue(payload), idempotency_key: key };
}

test("an interrupted bulk resumes with the same command, also past a server that asks to wait", async () => {
  const lines = Array.from({ length: 1_200 }, (_, id) => line("cut", id));
  writeFileSync(at("cut.ndjson"), lines.join("\n"));
  // A proxy that lets one batch through, then asks to wait.
  const proxy = await startReceiver();
  let passed = 0;
  proxy.answer = ({ path, body }) => {
    const isBatch = path.startsWith("/v1/events/batch?");
    if (isBatch && passed > 0) {
      const refusal = { error: "Too much.", details: {}, code: 429 };
      return { status: 429, headers: { "retry-after": "60" }, body: JSON.stringify(refusal) };
    }
    if (isBatch) passed += 1;
    const answer = { status: 201, body: "" };
    const after = forward(path, body).then((text) => (answer.body = text));
    return Object.assign(answer, { after });
  };
  const words = ["publish", "--batch", "cut.ndjson", "--checkpoint", "cut.checkpoint"];
  const child = spawn(process.execPath, [PROGRAM, ...words, "--url", new URL(proxy.url).origin], {
    cwd: folder,
    env: cleanEnv(),
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = once(child, "close");
  await until("it waits", () => stderr.includes("Trying again"));
  child.kill("SIGINT");
  expect((await ended)[0]).toBe(130);
  await proxy.close();
  expect(stderr).toBe(
    "Too much. Trying again for 2 minutes.\n" +
      "500 events published, 0 lines refused. Interrupted after line 500. The same command continues there, by cut.checkpoint; no line is stored twice.\n",
  );
  // As a crash between two of its saves would leave it: the server has more than the checkpoint counts.
  const ahead = lines
    .slice(500, 600)
    .map((text, place) => keyed(text, `${keys()}:${String(501 + place).padStart(9, "0")}`));
  await served.evreg.events.publishBatch(ahead);
  const rest = await run(words);
  expect(rest).toMatchObject({
    code: 0,
    stderr: `Continuing after line 500 of cut.ndjson, by cut.checkpoint.\n600 events published, 100 already there, 0 lines refused.\n`,
  });
  expect(await total("cut")).toBe(1_200);
});

test("a checkpoint belongs to the data, not to the address: for other data it is refused", async () => {
  const words = ["publish", "--batch", "cut.ndjson", "--checkpoint", "cut.checkpoint", "--data", data];
  await served.withoutServer(async () => {
    expect((await run(words)).stderr).toMatch(/^Nothing was left to publish/);
    expect((await run(["backup", at("copy.db"), "--data", data])).code).toBe(0);
    expect((await run(["restore", at("copy.db"), "--data", data, "--force"])).code).toBe(0);
    const refused = await run(words);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("or of the data from before a restore. Nothing was published.");
  });
});
