import { mkdirSync } from "node:fs";
import { afterAll, beforeAll } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { readTokenFile } from "../../src/runtime/find-server.ts";
import { useFolder } from "./command-line.ts";
import { type Changes, serveHere, type TestServer } from "./server.ts";

/** A server that runs for all tests of a file, and commands that act on it, typed in a folder of their own. */
export interface Served extends ReturnType<typeof useFolder> {
  /** The data folder, which the commands find by their environment. */
  readonly data: string;
  readonly server: TestServer;
  /** With the right to everything. */
  readonly evreg: Evreg;
  /** The first token; `none` where none is asked for. */
  readonly token: string;
  /** Does something while no server has the data folder, and starts the next one. */
  withoutServer<T>(work: () => Promise<T>): Promise<T>;
}

export interface ServedOptions {
  /** Whether nobody needs a token, which is the default here. */
  readonly dev?: boolean;
  readonly changes?: Changes;
  /** How long to prepare may take, where that is more than other hooks do. */
  readonly prepareMs?: number | undefined;
  /** Another server than one in the test's own process. */
  readonly serve?: (data: string) => Promise<TestServer>;
}

/** @param prepare what all tests of the file build on */
export function useServed(
  prepare: (served: Served) => Promise<unknown> = () => Promise.resolve(),
  { dev = true, changes = {}, prepareMs, serve }: ServedOptions = {},
): Served {
  const folder = useFolder({ EVREG_DATA: "data" });
  const data = folder.at("data");
  let server: TestServer;
  let evreg: Evreg;
  const served: Served = {
    ...folder,
    data,
    get server() {
      return server;
    },
    get evreg() {
      return evreg;
    },
    get token() {
      return readTokenFile(data, undefined) ?? "none";
    },
    async withoutServer(work) {
      await stop();
      try {
        return await work();
      } finally {
        await start();
      }
    },
  };
  const start = async (): Promise<void> => {
    server = await (serve?.(data) ?? serveHere(data, { dev, changes }));
    evreg = connect(dev ? { url: server.url } : { url: server.url, token: served.token });
  };
  const stop = async (): Promise<void> => {
    await evreg?.close();
    await server?.stop();
  };
  beforeAll(async () => {
    mkdirSync(data, { mode: 0o700 });
    await start();
    await prepare(served);
  }, prepareMs);
  afterAll(stop);
  return served;
}
