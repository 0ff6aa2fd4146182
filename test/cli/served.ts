import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { readTokenFile } from "../../src/runtime/find-server.ts";
import { commandLine } from "../support/command-line.ts";
import { temporaryFolder } from "../support/program.ts";
import { serveHere, type TestServer } from "../support/server.ts";

/** A server that runs for all tests of a file, and commands that act on it, typed in a folder of their own. */
export interface Served extends ReturnType<typeof commandLine> {
  readonly folder: string;
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

/**
 * @param prepare what all tests of the file build on
 * @param dev whether nobody needs a token
 */
export function useServed(
  prepare: (served: Served) => Promise<unknown> = () => Promise.resolve(),
  { dev = true }: { readonly dev?: boolean } = {},
): Served {
  const folder = temporaryFolder();
  const data = join(folder.path, "data");
  let server: TestServer;
  let evreg: Evreg;
  const served: Served = {
    folder: folder.path,
    data,
    ...commandLine(folder.path, { EVREG_DATA: data }),
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
    server = await serveHere(data, { dev });
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
  });
  afterAll(async () => {
    await stop();
    folder.remove();
  });
  return served;
}
