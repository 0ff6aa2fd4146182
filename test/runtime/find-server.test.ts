import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { findServer, readTokenFile, tokenFileOf, writeTokenFile } from "../../src/runtime/find-server.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { writeOwner } from "../../src/runtime/owner-file.ts";

let folder: string;
let server: Server | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "evreg-find-"));
});
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
  rmSync(folder, { recursive: true, force: true });
});

async function answering(listener: RequestListener): Promise<string> {
  const started = createServer(listener);
  server = started;
  await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(started.address() as AddressInfo).port}`;
}

function owned(url: string | undefined, pid = process.pid): void {
  const owner = { pid, command: "serve", instance: "abc", started_at: "2026-01-01T00:00:00.000Z" };
  writeOwner(folder, url === undefined ? owner : { ...owner, url }, silentLogger);
}

const healthy = (instance: string): RequestListener => {
  return (_request, response) => response.end(JSON.stringify({ data: { status: "ok", instance } }));
};

describe("findServer", () => {
  test("returns the address", async () => {
    const url = await answering(healthy("abc"));
    owned(url);
    expect(await findServer(folder)).toEqual({ url });
  });

  test("finds a server that is unavailable at the moment", async () => {
    const url = await answering((_request, response) => {
      response
        .writeHead(503)
        .end(JSON.stringify({ data: { instance: "abc" }, error: "x", details: {}, code: 503 }));
    });
    owned(url);
    expect(await findServer(folder)).toEqual({ url });
  });

  test.each([
    ["another instance", healthy("abd")],
    ["something that is no evreg", (_, response) => response.end("<html>")],
    ["an answer without end", (_, response) => void response.write("x".repeat(200_000))],
    ["a dropped connection", (request) => request.socket.destroy()],
    ["a redirect", (_, response) => response.writeHead(302, { location: "/x" }).end()],
  ] as readonly [string, RequestListener][])("returns nothing for %s", async (_name, listener) => {
    owned(await answering(listener));
    expect(await findServer(folder)).toBeUndefined();
  });

  test("reports a live process that does not answer in time", async () => {
    const url = await answering(() => undefined);
    owned(url);
    await expect(findServer(folder, { answerWithinMs: 100 })).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringMatching(
        /did not answer within 0\.1 s: evreg serve \(process \d+, http.*Try again/,
      ) as string,
      details: { url, pid: process.pid },
    });
  });

  test("sends no request when the file is missing, has no address, or its process has ended", async () => {
    expect(await findServer(folder)).toBeUndefined();
    owned(undefined);
    expect(await findServer(folder)).toBeUndefined();
    let requests = 0;
    const url = await answering((request, response) => {
      requests += 1;
      healthy("abc")(request, response);
    });
    owned(url, 2 ** 22 + 1);
    expect(await findServer(folder)).toBeUndefined();
    expect(requests).toBe(0);
    writeFileSync(join(folder, "owner.json"), "{");
    expect(await findServer(folder)).toBeUndefined();
  });
});

describe.runIf(process.platform === "linux")("findServer in a folder that nobody named", () => {
  test("trusts a process that has the data file open, whatever became of the file's name", async () => {
    let requests = 0;
    const url = await answering((request, response) => {
      requests += 1;
      healthy("abc")(request, response);
    });
    owned(url);
    const path = join(folder, "evreg.db");
    const find = () => findServer(folder, { isNamed: false });
    const data = openSync(path, "w");
    try {
      expect(await find()).toEqual({ url });
      rmSync(path);
      expect(await find()).toEqual({ url });
      requests = 0;
      // Alive, and without this file.
      owned(url, process.ppid);
      await expect(find()).rejects.toMatchObject({ code: "usage" });
      owned(url);
    } finally {
      closeSync(data);
    }
    await expect(find()).rejects.toMatchObject({
      code: "usage",
      message: expect.stringMatching(/owner\.json names the server http.*nothing was sent/) as string,
    });
    expect(requests).toBe(0);
  });
});

describe("the token file", () => {
  test("is readable by its owner only, and replaced in one step", () => {
    expect(tokenFileOf(folder)).toBeUndefined();
    expect(readTokenFile(folder)).toBeUndefined();
    writeFileSync(join(folder, "token"), "old", { mode: 0o644 });
    const path = writeTokenFile(folder, "new");
    expect(path).toBe(tokenFileOf(folder));
    expect(readTokenFile(folder)).toBe("new");
    if (process.platform !== "win32") expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});
