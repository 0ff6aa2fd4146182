import { readFileSync } from "node:fs";
import { startServer } from "../../src/app/server.ts";
import { defaultConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/keys.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { startProgram } from "./program.ts";

const PACKAGE = new URL("../../package.json", import.meta.url);

export type Changes = {
  readonly [K in keyof Config]?: Config[K] extends object ? Partial<Config[K]> : Config[K];
};

/** The defaults on any free port, with changes. */
export function configFor(data: string, changes: Changes = {}): Config {
  const base = { ...defaultConfig(data), data, port: 0, shutdownGraceMs: 2_000 };
  const { auth, database, tls, encryption, ui, limits, retention, delivery, log, remote, ...rest } = changes;
  return {
    ...base,
    ...rest,
    auth: { ...base.auth, ...auth },
    database: { ...base.database, ...database },
    tls: { ...base.tls, ...tls },
    encryption: { ...base.encryption, ...encryption },
    ui: { ...base.ui, ...ui },
    limits: { ...base.limits, ...limits },
    retention: { ...base.retention, ...retention },
    delivery: { ...base.delivery, ...delivery },
    log: { ...base.log, ...log },
    remote: { ...base.remote, ...remote },
  };
}

export interface TestServer {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Starts a server on `data` for tests of its callers, in the test's own process: a program of its own takes ten times as
 * much. With the single executable it is that. For what is said of the server's process there is `startProgram`.
 */
export async function serveHere(
  data: string,
  options: { readonly dev?: boolean; readonly changes?: Changes } = {},
): Promise<TestServer> {
  const { dev = false, changes = {} } = options;
  if (process.env["TEST_EXECUTABLE"]) {
    const program = await startProgram(data, dev ? ["--dev"] : []);
    return { url: program.url, stop: async () => void (await program.end("SIGTERM")) };
  }
  const { version } = JSON.parse(readFileSync(PACKAGE, "utf8")) as { version: string };
  return startServer({ config: configFor(data, changes), dev, version, logger: silentLogger });
}
