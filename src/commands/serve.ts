import { once } from "node:events";
import { relative } from "node:path";
import { styleText } from "node:util";
import { Flags } from "@oclif/core";
import { ConfigCommand, examples } from "../cli/base-command.ts";
import { acceptLossFlag, choiceFlag, numberFlag, textFlag } from "../cli/flags.ts";
import { Processes, processNumber, reportServing } from "../app/processes.ts";
import { interruption, releaseSigint } from "../cli/io/interruption.ts";
import { programName } from "../cli/target/next-command.ts";
import { shellWord } from "../domain/formats.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";
import { setCrashLog } from "../cli/report-error.ts";
import { readSettings } from "../cli/target/target.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { EvregError } from "../domain/error.ts";
import { isReservedName } from "../domain/names.ts";

type LogLevel = LoadedConfig["config"]["log"]["level"];

/** Each takes some 100 MB of memory and connections of the database; a mistyped number would take the machine. */
const MAX_PROCESSES = 64;

export class Serve extends ConfigCommand {
  static override summary = "Run the server: the HTTP API and the deliveries.";
  static override description =
    "Runs until it is stopped (Ctrl-C or SIGTERM); what is under way is then finished or handed back, and a second signal ends it at once. The log goes to stderr. The first start puts an admin token into the file `token` of the data folder. With tls.cert and tls.key set it speaks https. SIGHUP has a server that is not at a terminal take up its certificate and its log level again.";
  static override examples = examples({
    "On this machine, without tokens": "evreg serve --dev",
    "For a proxy with TLS in front of it": "evreg serve --port 8080 --data /var/lib/evreg",
    "With its data in PostgreSQL": "EVREG_DATABASE_URL=postgres://evreg@localhost/evreg evreg serve",
    "For other machines, with tls.cert and tls.key in its configuration":
      "evreg serve --host 0.0.0.0 --config /etc/evreg/evreg.config.yaml",
  });
  static override flags = {
    host: textFlag(
      "Address to listen on (default 127.0.0.1). Any that others reach needs tls.cert and tls.key, or a proxy with TLS before it.",
      "ADDRESS",
    ),
    port: numberFlag("Port to listen on (default 7480); 0 takes any free one."),
    database: textFlag(
      "A PostgreSQL database for the data, in the place of the data folder. Others on this machine can see what is typed: a password is better in EVREG_DATABASE_URL.",
      "URL",
    ),
    nodes: numberFlag(
      "Processes that serve behind the one address, with a database; each sends its share. SIGHUP starts one after the other anew, unless at a terminal.",
      { min: 1, max: MAX_PROCESSES },
    ),
    dev: Flags.boolean({
      summary: "For one's own machine: no token needed, http: and loopback handlers allowed, loopback only.",
    }),
    "log-level": choiceFlag(
      "The least important log lines to write (default info; with --dev debug, a line for each request and delivery).",
      ["debug", "info", "warn", "error", "silent"],
    ),
    "log-format": choiceFlag("pretty for people, json for machines; auto tells by the terminal.", [
      "auto",
      "pretty",
      "json",
    ]),
    "accept-loss": acceptLossFlag,
  };

  async run(): Promise<number | undefined> {
    const { flags } = await this.parse(Serve);
    const { config, places, file } = await readSettings(flags);
    const { nodes = 1 } = flags;
    if (nodes > 1 && config.database.url === undefined) {
      throw usageError(
        "--nodes needs a database (--database): one process alone can have a data folder. `evreg move` brings the data into a database.",
      );
    }
    const [{ createLogger }, { boundServerHeap }, { databaseName, startServer }] = await Promise.all([
      import("../runtime/logger.ts"),
      import("../runtime/heap.ts"),
      import("../app/server.ts"),
    ]);
    const { dev } = flags;
    // Who tries things out wants to see each request and each delivery.
    const levelOf = (loaded: Pick<LoadedConfig, "config" | "places">): LogLevel =>
      dev && !loaded.places.has("log.level") ? "debug" : loaded.config.log.level;
    const level = levelOf({ config, places });
    const number = processNumber();
    const pid = number === undefined ? undefined : process.pid;
    const logger = await createLogger({ ...config.log, level, pid });
    setCrashLog(level === "silent" ? undefined : logger);
    const fatal = Promise.withResolvers<EvregError>();
    const isAtTerminal = process.stderr.isTTY;
    // A terminal that is closed sends SIGHUP; any other server takes up its configuration by it.
    const isStoppedByHangup = isAtTerminal && number === undefined;
    const signal = interruption(isStoppedByHangup ? ["SIGTERM", "SIGHUP"] : ["SIGTERM"]);
    const stop = once(signal, "abort").then(() => (signal.reason as Error).message);
    // A terminal signals all of several processes. The first one ends the others in its own way.
    if (number !== undefined) {
      releaseSigint();
      for (const name of ["SIGINT", "SIGHUP"]) process.on(name, () => undefined);
    }
    if (nodes > 1 && number === undefined) {
      const processes = new Processes({ count: nodes, logger, stop });
      if (!isAtTerminal) process.on("SIGHUP", () => processes.replace());
      return await processes.run();
    }
    let reload: (() => Promise<void>) | undefined;
    if (!isAtTerminal && number === undefined) process.on("SIGHUP", () => void reload?.());
    const { version } = this.config;
    const acceptsLoss = flags["accept-loss"];
    const server = await startServer({ config, dev, version, logger, acceptsLoss, onFatal: fatal.resolve });
    boundServerHeap();
    reload = async () => {
      try {
        const loaded = await readSettings(flags);
        server.renewCertificate(loaded.config.tls);
        logger.setLevel(levelOf(loaded));
        logger.info({ log_level: levelOf(loaded) }, "The log level and the certificate were taken up again.");
      } catch (error) {
        logger.error({ err: error }, "Nothing was taken up again; the server goes on as it was.");
      }
    };
    const needsToken = config.auth.mode === "token" && !dev;
    const { url, addresses, tokenFile, evreg } = server;
    // The first of several processes that was started speaks for all.
    if (isAtTerminal && (number ?? 1) === 1) {
      const about = {
        version,
        url,
        addresses,
        page: config.ui.enabled ? `${url}/ui/` : undefined,
        data: config.data,
        database: config.database.url && databaseName(config.database.url),
        dev,
        configFile: file,
        tokenFile,
        needsToken,
        hasActions: (await evreg.actions.list()).data.some(({ action }) => !isReservedName(action)),
        cwd: process.cwd(),
        program: programName(),
      };
      process.stderr.write(announcement(about));
    } else {
      const first = tokenFile === undefined ? {} : { token_file: tokenFile };
      const { url: database } = config.database;
      const inDatabase = database === undefined ? {} : { database: databaseName(database) };
      const place = { data: config.data, ...inDatabase, ...first, config: file ?? null };
      logger.info({ url, addresses, ...place, version }, "listening");
    }

    reportServing();
    const reason = await Promise.race([stop, fatal.promise]);
    logger.info(typeof reason === "string" ? { signal: reason } : {}, "stopping");
    await server.stop();
    logger.info({}, "stopped");
    if (typeof reason === "string") return EXIT.done;
    throw reason;
  }
}

interface Announcement {
  readonly version: string;
  readonly url: string;
  /** Each `address:port` it answers at, wildcards and loopback among them. */
  readonly addresses: readonly string[];
  /** The address of the page for browsers, unless it is turned off. */
  readonly page: string | undefined;
  /** Absolute. */
  readonly data: string;
  /** The database that has the data. */
  readonly database: string | undefined;
  readonly dev: boolean;
  readonly configFile: string | undefined;
  readonly tokenFile: string | undefined;
  readonly needsToken: boolean;
  /** Whether there is any action beside evreg's own. */
  readonly hasActions: boolean;
  readonly cwd: string;
  /** `evreg`, or `npx evreg` in a checkout. */
  readonly program: string;
}

/** What a person who just started a server wants to know. Never the token itself, only where it is. */
export function announcement(about: Announcement): string {
  const { url, data, tokenFile, program, cwd } = about;
  // A command in the same folder finds the server by itself; elsewhere it has to be told the data folder.
  const isFound = relative(cwd, data) === ".evreg";
  const place = isFound ? "" : ` --data ${shellWord(data)}`;
  let access = "none needed";
  if (tokenFile !== undefined) access = `cat ${shellWord(tokenFile)} prints it`;
  else if (about.needsToken) {
    access = `one of those that were made; without any, stop this and run ${program} tokens create NAME --scope admin --data ${shellWord(data)}`;
  }
  const next = about.hasActions
    ? `${program} events${place}`
    : // Not a name of the README's tour, which creates its own.
      `${program} actions create hello.said --application hello --schema '{"type": "object"}'${place}`;
  const others = about.addresses.filter(
    (address) => !OF_THIS_MACHINE.test(address) && !url.endsWith(`/${address}`),
  );
  return [
    `${bold(`evreg ${about.version}`)} listens on ${bold(url)}${about.dev ? ", for this machine only (--dev)" : ""}`,
    ...(others.length === 0 ? [] : [`  also   ${others.join(", ")}`]),
    ...(about.page === undefined
      ? []
      : [
          `  page   ${about.page}`,
          ...(about.needsToken ? ["         to sign in there, paste a token"] : []),
        ]),
    `  data   ${data}${about.database === undefined ? "" : `, and in the database ${about.database}`}`,
    ...(about.configFile === undefined ? [] : [`  config ${about.configFile}`]),
    `  token  ${access}`,
    `Next, in another terminal${place === "" ? " in this folder" : ""}:`,
    `  ${next}`,
    "Ctrl-C stops it.",
    "",
  ].join("\n");
}

/** Wildcards and loopback: no way for another machine to come. */
const OF_THIS_MACHINE = /^(?:0\.0\.0\.0|127(?:\.\d+){3}|\[::1?\]):/;

function bold(text: string): string {
  return styleText("bold", text, { stream: process.stderr });
}
