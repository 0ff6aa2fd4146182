import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Finding } from "../../src/domain/operations.ts";
import { commandLine } from "../support/command-line.ts";
import { startCommand, temporaryFolder } from "../support/program.ts";
import { otherServer } from "../support/other-server.ts";
import { serveHere } from "../support/server.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

const folder = temporaryFolder();
const { run } = commandLine(folder.path, {});
const small = mountSmallDisk(12);

afterAll(() => {
  small?.remove();
  folder.remove();
});

test.each([
  [503, 6],
  [429, 6],
  [422, 1],
])("a command that a server answers with %i ends with %i", async (status, code) => {
  const headers = status === 422 ? {} : { "retry-after": "1" };
  const { url, close } = await otherServer((_request, response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify({ error: "Not now.", details: {}, code: status }));
  });
  expect(await run(["publish", "order.created", "{}", "--url", url])).toMatchObject({
    code,
    stderr: expect.stringContaining("Error: Not now.") as unknown,
  });
  await close();
});

test.skipIf(small === undefined)(
  "with a full disk, publishing says to try again, and the doctor that no restart is needed (skipped where none can be mounted)",
  async () => {
    const data = join(small!.path, "data");
    const filler = join(small!.path, "filler");
    const here = ["--data", data];
    const payload = join(folder.path, "payload.json");
    writeFileSync(payload, JSON.stringify({ text: "y".repeat(300_000) }));
    const publish = () => run(["publish", "order.created", "--file", payload, ...here]);
    const fill = (): void => {
      const { bavail, bsize } = statfsSync(small!.path);
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
    };

    const server = await serveHere(data, { dev: true });
    try {
      const create = "actions create order.created --application shop --schema -".split(" ");
      await run([...create, ...here], { input: '{"type": "object"}' });
      fill();
      const refused = await publish();
      expect(refused).toMatchObject({ code: 6, stdout: "" });
      expect(refused.stderr).toContain("the disk is full");
      const line = JSON.stringify({ action: "order.created", payload: {} });
      expect(
        await run(["actions", "create", "other", ...create.slice(3), ...here], { input: "{}" }),
      ).toMatchObject({ code: 6 });
      // It waits, in a process of its own.
      const batch = startCommand(["publish", "--batch", "-", ...here], { cwd: folder.path });
      batch.child.stdin.end(line);
      await until("the batch to be tried again", () => batch.soFar().stderr.includes("Trying again"));

      const { data: findings } = JSON.parse((await run(["doctor", "--json", ...here])).stdout) as {
        data: readonly Finding[];
      };
      expect(findings.find(({ check }) => check === "server")).toMatchObject({
        status: "problem",
        found: expect.stringContaining("the disk is full") as unknown,
        remedy: expect.stringMatching(/tries again by itself.*needs no restart/) as unknown,
      });

      rmSync(filler);
      await until("publishing to go on", async () => (await publish()).code === 0);
      expect(await batch.ended).toMatchObject({ code: 0 });
    } finally {
      await server.stop();
    }

    fill();
    expect(await publish()).toMatchObject({ code: 6 });
  },
);
