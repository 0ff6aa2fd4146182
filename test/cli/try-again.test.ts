import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Finding } from "../../src/domain/operations.ts";
import { useFolder } from "../support/command-line.ts";
import { startCommand } from "../support/program.ts";
import { otherServer } from "../support/other-server.ts";
import { serveHere } from "../support/server.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

const { folder, run, write, expectEach } = useFolder();
const small = mountSmallDisk(12);
afterAll(() => small?.remove());

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
  await expectEach([[`publish order.created {} --url ${url}`, code, undefined, /^Error: Not now\./]]);
  await close();
});

test.skipIf(small === undefined)(
  "with a full disk, publishing says to try again, and the doctor that no restart is needed (skipped where none can be mounted)",
  async () => {
    const data = join(small!.path, "data");
    const filler = join(small!.path, "filler");
    const here = `--data ${data}`;
    write("payload.json", { text: "y".repeat(300_000) });
    const publish = `publish order.created payload.json ${here}`;
    const fill = (): void => {
      const { bavail, bsize } = statfsSync(small!.path);
      writeFileSync(filler, Buffer.alloc(bavail * bsize));
    };

    const server = await serveHere(data, { dev: true });
    try {
      const create = `actions create --application shop --schema - ${here}`;
      await expectEach([[`${create} order.created`, 0, undefined, undefined, { input: "{}" }]]);
      fill();
      await expectEach([
        [publish, 6, "", /the disk is full/],
        [`${create} other`, 6, undefined, undefined, { input: "{}" }],
      ]);
      // It waits, in a process of its own.
      const batch = startCommand(`publish --batch - ${here}`, { cwd: folder });
      batch.child.stdin.end(JSON.stringify({ action: "order.created", payload: {} }));
      await until("the batch to be tried again", () => batch.soFar().stderr.includes("Trying again"));

      const { stdout } = await run(`doctor --json ${here}`);
      const { data: findings } = JSON.parse(stdout) as { data: readonly Finding[] };
      expect(findings.find(({ check }) => check === "server")).toMatchObject({
        status: "problem",
        found: expect.stringContaining("the disk is full") as unknown,
        remedy: expect.stringMatching(/tries again by itself.*needs no restart/) as unknown,
      });

      rmSync(filler);
      await until("publishing to go on", async () => (await run(publish)).code === 0);
      expect(await batch.ended).toMatchObject({ code: 0 });
    } finally {
      await server.stop();
    }

    fill();
    await expectEach([[publish, 6]]);
  },
);
