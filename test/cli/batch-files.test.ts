import { expect, test } from "vitest";
import { startCommand } from "../support/program.ts";
import { startReceiver } from "../support/receiver.ts";
import { post } from "../support/post.ts";
import { register } from "../support/records.ts";
import { until } from "../support/until.ts";
import { useServed } from "../support/served.ts";

const served = useServed(async ({ evreg }) => {
  const schemata = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };
  for (const action of ["kept", "cut"]) await register(evreg, action, schemata);
});
const { folder, run, write } = served;

function line(action: string, id: unknown, more = ""): string {
  return `{"action":"${action}","payload":{"id":${JSON.stringify(id)}}${more}}`;
}

async function total(action: string): Promise<number> {
  return (await served.evreg.events.list({ action, limit: 1 })).meta.total;
}

function publishKept(lines: readonly string[]) {
  write("kept.ndjson", lines.map((one) => `${one}\n`).join(""));
  return run(["publish", "--batch", "kept.ndjson", "--idempotency-key", "kept"]);
}

test("a file with a key can be published again, corrected and longer, and each line is stored once", async () => {
  const own = line("kept", 2, ',"idempotency_key":"mine"');
  const lines = [line("kept", 1), own, "", "not json", line("kept", "five")];
  expect(await publishKept(lines)).toMatchObject({
    code: 7,
    stderr: expect.stringContaining(
      "2 events published, 2 lines refused. Fix those lines and give the same command again: it publishes no line twice.\n",
    ) as string,
  });

  const mended = [...lines.slice(0, 3), line("kept", 4), line("kept", 5), line("kept", 6)];
  const again = await publishKept(mended);
  expect(again).toMatchObject({ code: 0, stderr: "3 events published, 2 already there, 0 lines refused.\n" });
  const changed = await publishKept([line("kept", 7), ...mended.slice(1)]);
  expect(changed.code).toBe(7);
  expect(changed.stderr).toMatch(/^Line 1: idempotency_key: was used before .* a new event needs a new key/);
  expect(await total("kept")).toBe(5);
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
