import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { permissionsFinding } from "../../src/app/doctor-findings.ts";
import { findServer, readTokenFile } from "../../src/runtime/find-server.ts";
import { isLocalUrl } from "../../src/runtime/local-addresses.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { readOwner, writeOwner } from "../../src/runtime/owner-file.ts";

const STRANGER = 65_534;
const isRoot = process.getuid?.() === 0;

let folder: string;
let server: Server;
let url: string;
let requests: number;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "evreg-trust-"));
  requests = 0;
  server = createServer((_request, response) => {
    requests += 1;
    response.end(JSON.stringify({ data: { instance: "abc" } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  owned(url);
});
afterEach(() => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

function owned(at: string): void {
  const started_at = "2026-01-01T00:00:00.000Z";
  writeOwner(
    folder,
    { pid: process.pid, command: "serve", instance: "abc", started_at, url: at },
    silentLogger,
  );
}

/** This process as a user who is neither root nor the one who made the files of this test. */
function asAnotherUser(): void {
  vi.spyOn(process, "getuid").mockReturnValue(4_242);
}

/** The refusal's message, before which nothing was sent. */
async function refusal(): Promise<string> {
  const error = await findServer(folder).catch((failure: unknown) => failure);
  expect(error).toMatchObject({ code: "usage" });
  expect(requests).toBe(0);
  return (error as Error).message;
}

describe.skipIf(process.platform === "win32")("whose announcement of a server is trusted", () => {
  test.each([0o777, 0o770, 0o1777, 0o702])("nobody's, in a folder others may write to (%o)", async (mode) => {
    chmodSync(folder, mode);
    const message = await refusal();
    expect(message).toContain(`Run: chmod 700 ${folder}`);
    expect(message).toMatch(/--url.*--token-file/);
    chmodSync(folder, 0o755);
    expect(await findServer(folder)).toEqual({ url });
  });

  test.each([0o666, 0o620, 0o602])("nobody's, in a file others may write to (%o)", async (mode) => {
    chmodSync(join(folder, "owner.json"), mode);
    expect(await refusal()).toContain(`Remove ${join(folder, "owner.json")}`);
  });

  test("nobody's, in another user's folder", async () => {
    if (isRoot) chownSync(folder, STRANGER, -1);
    asAnotherUser();
    expect(await refusal()).toMatch(/belongs to another user \(\d+\).*Run evreg as that user/);
  });

  test.runIf(isRoot)("not another user's, in a folder of one's own or root's", async () => {
    chownSync(join(folder, "owner.json"), STRANGER, -1);
    expect(await refusal()).toContain(`belongs to another user (${STRANGER})`);
    asAnotherUser();
    expect(await refusal()).toContain(`belongs to another user (${STRANGER})`);
  });

  test.runIf(isRoot)(
    "root's, by everybody; and a folder's own user's by root, who is told whose it is",
    async () => {
      vi.spyOn(process, "getuid").mockReturnValue(4_242);
      expect(await findServer(folder)).toEqual({ url });
      vi.restoreAllMocks();
      chownSync(folder, STRANGER, -1);
      chownSync(join(folder, "owner.json"), STRANGER, -1);
      expect(await findServer(folder)).toEqual({ url, otherUser: STRANGER });
      chownSync(join(folder, "owner.json"), STRANGER - 1, -1);
      requests = 0;
      expect(await refusal()).toContain(`belongs to another user (${STRANGER - 1})`);
    },
  );

  test("not a link's, and no link to a token", () => {
    const elsewhere = join(folder, "elsewhere");
    writeFileSync(elsewhere, "a secret of somebody's");
    symlinkSync(elsewhere, join(folder, "token"));
    expect(readTokenFile(folder)).toBeUndefined();
    rmSync(join(folder, "owner.json"));
    symlinkSync(elsewhere, join(folder, "owner.json"));
    expect(readOwner(folder)).toBeUndefined();
  });

  test("an open folder is found by the doctor, and logged at a start", () => {
    expect(permissionsFinding(folder)).toMatchObject({ status: "ok" });
    chmodSync(folder, 0o775);
    const remedy = expect.stringContaining(`chmod 700 ${folder}`) as string;
    expect(permissionsFinding(folder)).toMatchObject({ status: "warning", remedy });
  });
});

describe("an announced server is on this machine", () => {
  test("a name, or anything but a bare address of this machine, is not contacted", async () => {
    const { port } = new URL(url);
    for (const other of [`http://localhost:${port}`, `${url}/base`, `${url}/\u001b]0;x`, "nothing"]) {
      owned(other);
      expect.soft(await findServer(folder), other).toBeUndefined();
    }
    expect(requests).toBe(0);
  });

  test("any interface of this machine is accepted, and no other machine's", () => {
    const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    for (const { address, family } of own) {
      if (address.startsWith("fe80:")) continue;
      expect.soft(isLocalUrl(`http://${family === "IPv6" ? `[${address}]` : address}:7480`)).toBe(true);
    }
    for (const other of ["http://192.0.2.77:7480", "http://[2001:db8::7]:7480", "https://127.0.0.1:7480"]) {
      expect.soft(isLocalUrl(other), other).toBe(false);
    }
  });
});
