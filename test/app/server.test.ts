import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { findServer } from "../../src/app/server.ts";
import { connect } from "../../src/client/client.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { readOwner } from "../../src/runtime/owner-file.ts";
import { KeptLog } from "../support/kept-log.ts";
import { configFor } from "../support/server.ts";
import { closing, dataFolder, ORDER_PLACED, refused, start, status } from "./setup.ts";

describe("start and stop", () => {
  test("a running server announces its address in its folder, and a stop, asked for once or often, removes it", async () => {
    const data = dataFolder();
    const server = await start(data);
    expect(readOwner(data)).toMatchObject({ command: "serve", pid: process.pid, url: server.url });
    expect(await findServer(data)).toEqual({ url: server.url });
    const stops = Array.from({ length: 50 }, () => server.stop());
    expect(new Set(stops).size).toBe(1);
    await Promise.all(stops);
    expect(readOwner(data)).toBeUndefined();
    expect(await findServer(data)).toBeUndefined();
  });

  test("its health names its version and the state of its engine", async () => {
    const { evreg } = await start(dataFolder());
    expect((await evreg.health()).data).toMatchObject({ status: "ok", engine: "running", version: "1.2.3" });
  });

  test("a server that listens on all addresses announces a loopback address", async () => {
    const data = dataFolder();
    const server = await start(data, { host: "0.0.0.0" });
    expect(new URL(server.url).hostname).toBe("127.0.0.1");
    expect((await findServer(data))?.url).toBe(server.url);
  });

  test.skipIf(process.platform === "win32")(
    "a warning is logged for a folder that others may write to",
    async () => {
      const [data, closed] = [dataFolder(), dataFolder()];
      mkdirSync(data);
      chmodSync(data, 0o777);
      const logger = new KeptLog();
      await start(data, {}, { logger });
      await start(closed, {}, { logger });
      expect(logger.of("warn")).toMatchObject([{ message: expect.stringContaining(`chmod 700 ${data}`) }]);
    },
  );

  test("a stop does not wait for a backup, however late the shutdown deadline is", async () => {
    const data = dataFolder();
    const server = await start(data, { shutdownGraceMs: 600_000 });
    await server.evreg.actions.create(ORDER_PLACED);
    // More than the system takes for a caller that does not read.
    const event = { action: "order.placed", payload: RawJson.fromValue({ id: "x".repeat(1_000_000) }) };
    await server.evreg.events.publishBatch(Array.from({ length: 15 }, () => event));
    const evreg = closing(
      connect({ url: server.url, token: readFileSync(join(data, "token"), "utf8").trim() }),
    );
    const backup = await evreg.backup();
    const content = backup.content()[Symbol.asyncIterator]();
    await content.next();
    await server.stop();
    const readOn = async (): Promise<void> => {
      while ((await content.next()).done !== true);
    };
    await expect(readOn()).rejects.toThrow(
      /so there is none: .* as when the server is stopped\. Run it again/,
    );
    await backup.close();
  });
});

describe("a failed start leaves nothing behind", () => {
  test("a port in use is named in the error, and the folder is free again", async () => {
    const data = dataFolder();
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    try {
      await refused(start(data, { port }), "conflict", `127.0.0.1:${port}`);
    } finally {
      other.close();
    }
    expect(readOwner(data)).toBeUndefined();
    // A command would take an empty data folder for the one that was meant.
    expect(existsSync(join(data, "evreg.db"))).toBe(false);
    const server = await start(data);
    expect(await status(`${server.url}/health`)).toBe(200);
  });

  test("a second server on the same folder is refused within a second, and the error names the first", async () => {
    const data = dataFolder();
    const first = await start(data);
    const startedMs = performance.now();
    const failure = await start(data).catch((error: unknown) => error);
    expect(performance.now() - startedMs).toBeLessThan(1_000);
    expect(failure).toMatchObject({ code: "conflict" });
    const { message } = failure as Error;
    expect(message).toContain("evreg serve");
    expect(message).toContain(`process ${process.pid}`);
    expect(message).toContain(first.url);
    expect(await status(`${first.url}/health`)).toBe(200);
    expect((await findServer(data))?.url).toBe(first.url);
  });

  test("a first token that cannot be written to its file is removed from the store", async () => {
    const data = dataFolder();
    mkdirSync(join(data, "token", "in the way"), { recursive: true });
    await refused(start(data), "unavailable", data);
    rmSync(join(data, "token"), { recursive: true });
    const server = await start(data);
    expect((await server.evreg.tokens.list()).data).toHaveLength(1);
    expect(existsSync(join(data, "token"))).toBe(true);
  });
});

describe("the first token", () => {
  test("is created once, in a file for its owner only, and gives access to the server", async () => {
    const data = dataFolder();
    const first = await start(data);
    expect(first.tokenFile).toBe(join(data, "token"));
    if (process.platform !== "win32") expect(statSync(join(data, "token")).mode & 0o777).toBe(0o600);
    const token = readFileSync(join(data, "token"), "utf8").trim();
    expect(await status(`${first.url}/v1/tokens`)).toBe(401);
    expect(await status(`${first.url}/v1/tokens`, { authorization: `Bearer ${token}` })).toBe(200);
    await first.stop();

    const second = await start(data);
    expect(second.tokenFile).toBe(join(data, "token"));
    expect(readFileSync(join(data, "token"), "utf8").trim()).toBe(token);
    expect((await second.evreg.tokens.list()).data).toHaveLength(1);
    await second.evreg.tokens.revoke(1);
    await second.evreg.tokens.create({ name: "x", scopes: ["admin"] });
    await second.stop();

    const third = await start(data);
    expect(third.tokenFile).toBeUndefined();
    const answer = await fetch(`${third.url}/v1/tokens`);
    expect(await answer.text()).not.toContain("in the file");
  });

  test("can be given by the operator", async () => {
    const donor = await start(dataFolder());
    const given = (await donor.evreg.tokens.create({ name: "x", scopes: ["admin"] })).data.token;
    const data = dataFolder();
    const server = await start(data, { auth: { bootstrapToken: given } });
    expect(readFileSync(join(data, "token"), "utf8").trim()).toBe(given);
    expect(await status(`${server.url}/v1/tokens`, { authorization: `Bearer ${given}` })).toBe(200);
  });

  test("is not created while no token is needed", async () => {
    const data = dataFolder();
    const server = await start(data, { auth: { mode: "off" } });
    expect(server.tokenFile).toBeUndefined();
    expect((await server.evreg.tokens.list()).data).toEqual([]);
    expect(existsSync(join(data, "token"))).toBe(false);
  });
});

describe("dev", () => {
  const subscription = { application: "a", subscription: "s", action: "order.placed" };

  test("changes no given configuration, needs no token, and allows http: and loopback handlers, which are refused otherwise", async () => {
    const config = configFor(dataFolder());
    const before = structuredClone(config);
    const dev = await start(config.data, {}, { config, dev: true });
    expect(config).toEqual(before);
    expect(await status(`${dev.url}/v1/tokens`)).toBe(200);
    await dev.evreg.actions.create(ORDER_PLACED);
    for (const handler of ["http://127.0.0.1:9/", "http://[::1]:9/"]) {
      const { data } = await dev.evreg.subscriptions.create({
        ...subscription,
        subscription: handler,
        handler,
      });
      expect(data.handler).toBe(handler);
    }
    const other = { ...subscription, handler: "http://10.0.0.1/" };
    await expect(dev.evreg.subscriptions.create(other)).rejects.toMatchObject({ code: "invalid" });

    const usual = await start(dataFolder());
    await usual.evreg.actions.create(ORDER_PLACED);
    const loopback = { ...subscription, handler: "http://127.0.0.1:9/" };
    await expect(usual.evreg.subscriptions.create(loopback)).rejects.toMatchObject({ code: "invalid" });
  });

  test.each(["0.0.0.0", "::", "10.1.2.3", "evreg.example"])(
    "is refused on %s, before anything is opened",
    async (host) => {
      const data = dataFolder();
      await expect(start(data, { host }, { dev: true })).rejects.toMatchObject({ code: "usage" });
      expect(existsSync(data)).toBe(false);
    },
  );
});

test.each([
  ["reads", 0],
  ["writes", 1],
])(
  "a store whose thread that %s fails is logged once, and the server still stops in order",
  async (_, place) => {
    const data = dataFolder();
    const threads: Worker[] = [];
    const remember = (thread: Worker): void => void threads.push(thread);
    process.on("worker", remember);
    const errors: unknown[] = [];
    const fatal = Promise.withResolvers<unknown>();
    const onFatal = (error: unknown): void => {
      errors.push(error);
      fatal.resolve(error);
    };
    const server = await start(data, {}, { onFatal });
    process.off("worker", remember);
    expect(threads).toHaveLength(2);

    // A message it cannot make sense of ends the thread from within.
    threads[place]?.postMessage(null);
    expect(await fatal.promise).toMatchObject({ code: "unavailable" });
    expect(await status(`${server.url}/health`)).toBe(503);
    await server.stop();
    expect(errors).toHaveLength(1);
    expect(readOwner(data)).toBeUndefined();

    const again = await start(data);
    expect(await status(`${again.url}/health`)).toBe(200);
  },
);
