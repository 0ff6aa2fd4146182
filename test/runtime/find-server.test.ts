import {
  chmodSync,
  chownSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { permissionsFinding } from "../../src/app/doctor-findings.ts";
import { findServer, readTokenFile, tokenFileOf, writeTokenFile } from "../../src/runtime/find-server.ts";
import { isLocalUrl } from "../../src/runtime/local-addresses.ts";
import { createLogger, silentLogger } from "../../src/runtime/logger.ts";
import { type Owner, readOwner, writeOwner } from "../../src/runtime/owner-file.ts";
import { temporaryFolder } from "../support/program.ts";

const isWindows = process.platform === "win32";
const STRANGER = 65_534;
const isRoot = process.getuid?.() === 0;

let temporary: ReturnType<typeof temporaryFolder>;
let folder: string;
let ownerFile: string;
let server: Server;
let listener: RequestListener;
let url: string;
let requests: number;
beforeEach(async () => {
  temporary = temporaryFolder();
  folder = temporary.path;
  ownerFile = join(folder, "owner.json");
  requests = 0;
  listener = answering({ data: { status: "ok", instance: "abc" } });
  server = createServer((request, response) => {
    requests += 1;
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  owned();
});
afterEach(() => {
  vi.restoreAllMocks();
  server.closeAllConnections();
  server.close();
  temporary.remove();
});

function answering(body: object): RequestListener {
  return (_request, response) => response.end(JSON.stringify(body));
}

/** Announces a server, by default the one that answers here. */
function owned(member: Partial<Owner> = {}): void {
  const started_at = "2026-01-01T00:00:00.000Z";
  const owner = { pid: process.pid, command: "serve", instance: "abc", started_at, url, ...member };
  writeOwner(folder, owner, silentLogger);
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

describe("findServer", () => {
  test("returns the address, also of a server that is unavailable at the moment", async () => {
    expect(await findServer(folder)).toEqual({ url });
    listener = (_request, response) => {
      const body = { data: { instance: "abc" }, error: "x", details: {}, code: 503 };
      response.writeHead(503).end(JSON.stringify(body));
    };
    expect(await findServer(folder)).toEqual({ url });
  });

  test.each([
    ["another instance", answering({ data: { status: "ok", instance: "abd" } })],
    ["something that is no evreg", (_, response) => response.end("<html>")],
    ["an answer without end", (_, response) => void response.write("x".repeat(200_000))],
    ["a dropped connection", (request) => request.socket.destroy()],
    ["a redirect", (_, response) => response.writeHead(302, { location: "/x" }).end()],
  ] as readonly [string, RequestListener][])("returns nothing for %s", async (_name, one) => {
    listener = one;
    expect(await findServer(folder)).toBeUndefined();
  });

  test("reports a live process that does not answer in time", async () => {
    listener = () => undefined;
    await expect(findServer(folder, { answerWithinMs: 100 })).rejects.toMatchObject({
      code: "unreachable",
      message: expect.stringMatching(
        /did not answer within 0\.1 s: evreg serve \(process \d+, http.*Try again/,
      ) as string,
      details: { url, pid: process.pid },
    });
  });

  test("sends no request when the file is missing, has no address, or its process has ended", async () => {
    owned({ pid: 2 ** 22 + 1 });
    expect(await findServer(folder)).toBeUndefined();
    for (const text of ["{", JSON.stringify({ ...readOwner(folder), url: undefined })]) {
      writeFileSync(ownerFile, text);
      expect(await findServer(folder)).toBeUndefined();
    }
    rmSync(ownerFile);
    expect(await findServer(folder)).toBeUndefined();
    expect(requests).toBe(0);
  });

  test("waits for the address of one that is starting", async () => {
    const { url: _, ...starting } = { ...readOwner(folder)!, pid: process.ppid };
    writeFileSync(ownerFile, JSON.stringify(starting));
    const found = findServer(folder);
    setTimeout(owned, 30);
    expect(await found).toEqual({ url });
    writeFileSync(ownerFile, JSON.stringify(starting));
    expect(await findServer(folder, { answerWithinMs: 30 })).toBeUndefined();
  });

  test("does not wait where a start would have ended long ago, as after another process has waited", async () => {
    const { url: _, ...starting } = { ...readOwner(folder)!, pid: process.ppid };
    writeFileSync(ownerFile, JSON.stringify(starting));
    const startedMs = performance.now();
    expect(await findServer(folder, { answerWithinMs: 300 })).toBeUndefined();
    const waitedMs = performance.now() - startedMs;
    expect(await findServer(folder, { answerWithinMs: 300 })).toBeUndefined();
    for (const writtenMs of [Date.now() - 60_000, Date.now() + 3_600_000]) {
      utimesSync(ownerFile, writtenMs / 1_000, writtenMs / 1_000);
      expect(await findServer(folder)).toBeUndefined();
    }
    expect(waitedMs).toBeGreaterThan(200);
    expect(performance.now() - startedMs - waitedMs).toBeLessThan(200);
  });

  test("contacts no name, nor anything but a bare address of this machine", async () => {
    const { port } = new URL(url);
    for (const other of [`http://localhost:${port}`, `${url}/base`, `${url}/\u001b]0;x`, "nothing"]) {
      owned({ url: other });
      expect.soft(await findServer(folder), other).toBeUndefined();
    }
    expect(requests).toBe(0);
  });

  test("takes any interface of this machine, and no other machine's", () => {
    const own = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
    for (const { address, family } of own) {
      if (address.startsWith("fe80:")) continue;
      expect.soft(isLocalUrl(`http://${family === "IPv6" ? `[${address}]` : address}:7480`)).toBe(true);
    }
    const others = ["192.0.2.77", "8.8.8.8", "[2001:db8::7]", "[2001:4860:4860::8888]"];
    for (const other of [...others.map((host) => `http://${host}:7480`), "https://127.0.0.1:7480"]) {
      expect.soft(isLocalUrl(other), other).toBe(false);
    }
  });

  test("returns nothing for an announcement that is a copy of another folder's", async () => {
    const copy = join(folder, "copy");
    cpSync(ownerFile, join(copy, "owner.json"));
    expect(await findServer(copy)).toBeUndefined();
    expect(requests).toBe(0);
    expect(await findServer(folder)).toEqual({ url });
  });
});

describe.skipIf(isWindows)("whose announcement of a server is trusted", () => {
  test.each([0o777, 0o770, 0o1777, 0o702])("nobody's, in a folder others may write to (%o)", async (mode) => {
    chmodSync(folder, mode);
    const message = await refusal();
    expect(message).toContain(`Run: chmod 700 ${folder}`);
    expect(message).toMatch(/--url.*--token-file/);
    chmodSync(folder, 0o755);
    expect(await findServer(folder)).toEqual({ url });
  });

  test.each([0o666, 0o620, 0o602])("nobody's, in a file others may write to (%o)", async (mode) => {
    chmodSync(ownerFile, mode);
    expect(await refusal()).toContain(`Remove ${ownerFile}`);
  });

  test("nobody's, in another user's folder", async () => {
    if (isRoot) chownSync(folder, STRANGER, -1);
    asAnotherUser();
    expect(await refusal()).toMatch(/belongs to another user \(\d+\).*Run evreg as that user/);
  });

  test.runIf(isRoot)("not another user's, in a folder of one's own or root's", async () => {
    chownSync(ownerFile, STRANGER, -1);
    expect(await refusal()).toContain(`belongs to another user (${STRANGER})`);
    asAnotherUser();
    expect(await refusal()).toContain(`belongs to another user (${STRANGER})`);
  });

  test.runIf(isRoot)(
    "root's, by everybody; and a folder's own user's by root, who is told whose it is",
    async () => {
      asAnotherUser();
      expect(await findServer(folder)).toEqual({ url });
      vi.restoreAllMocks();
      chownSync(folder, STRANGER, -1);
      chownSync(ownerFile, STRANGER, -1);
      expect(await findServer(folder)).toEqual({ url, otherUser: STRANGER });
      chownSync(ownerFile, STRANGER - 1, -1);
      requests = 0;
      expect(await refusal()).toContain(`belongs to another user (${STRANGER - 1})`);
    },
  );

  test("not a link's, and no link to a token", () => {
    const elsewhere = join(folder, "elsewhere");
    writeFileSync(elsewhere, "a secret of somebody's");
    symlinkSync(elsewhere, join(folder, "token"));
    expect(readTokenFile(folder)).toBeUndefined();
    rmSync(ownerFile);
    symlinkSync(elsewhere, ownerFile);
    expect(readOwner(folder)).toBeUndefined();
  });

  test("an open folder is found by the doctor, and logged at a start", () => {
    expect(permissionsFinding(folder)).toMatchObject({ status: "ok" });
    chmodSync(folder, 0o775);
    const remedy = expect.stringContaining(`chmod 700 ${folder}`) as string;
    expect(permissionsFinding(folder)).toMatchObject({ status: "warning", remedy });
  });
});

describe("the files that announce a server", () => {
  test("are readable by their owner only, and replaced in one step", () => {
    expect(tokenFileOf(folder)).toBeUndefined();
    expect(readTokenFile(folder)).toBeUndefined();
    writeFileSync(join(folder, "token"), "old", { mode: 0o644 });
    writeTokenFile(folder, "new");
    const path = tokenFileOf(folder)!;
    expect(readTokenFile(folder)).toBe("new");
    owned({ instance: "next" });
    expect(readOwner(folder)).toMatchObject({ instance: "next", url });
    expect(readdirSync(folder).toSorted()).toEqual(["owner.json", "token"]);
    if (isWindows) return;
    for (const file of [path, ownerFile]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test.skipIf(isWindows)("follow no link that somebody else has put there", () => {
    const victim = join(folder, "victim");
    writeFileSync(victim, "precious");
    rmSync(ownerFile);
    for (const link of [ownerFile, `${ownerFile}.${process.pid}`]) symlinkSync(victim, link);
    owned();
    expect(readFileSync(victim, "utf8")).toBe("precious");
    expect(lstatSync(ownerFile).isSymbolicLink()).toBe(false);
    expect(readOwner(folder)).toMatchObject({ url });
  });

  test("are only reported where a server cannot write its address, with what to do, and leave nothing behind", async () => {
    const owner = readOwner(folder)!;
    rmSync(ownerFile);
    mkdirSync(join(ownerFile, "inside"), { recursive: true });
    const lines: string[] = [];
    const target = { write: (text: string) => void lines.push(text) };
    writeOwner(folder, owner, await createLogger({ level: "warn", format: "json" }, target));
    expect(lines.join("")).toContain(folder);
    expect(lines.join("")).toMatch(/owner\.json cannot be written.*name this server to them with --url/);
    expect(readdirSync(folder)).toEqual(["owner.json"]);
  });
});
