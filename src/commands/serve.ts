import { Flags } from "@oclif/core";
import { BaseCommand } from "../cli/base-command.ts";
import { EXIT } from "../cli/exit-code.ts";
import { faultsOfServer } from "../cli/fault-log.ts";
import { acceptLossFlag, numberFlag } from "../cli/flags.ts";
import { leaveInterruption } from "../cli/interruption.ts";
import { contextInUse } from "../cli/place.ts";
import { printableLine } from "../cli/printable.ts";
import { announcement } from "../cli/serve-announcement.ts";
import { readSettings } from "../cli/settings.ts";
import type { RunningServer } from "../app.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { EvregError } from "../domain/error.ts";
import { isReservedName } from "../domain/names.ts";

type LogLevel = LoadedConfig["config"]["log"]["level"];

export default class Serve extends BaseCommand {
  static override usage =
    "serve [--host ADDRESS] [--port NUMBER] [--dev] [--log-level LEVEL] [--log-format auto|pretty|json] [--accept-loss]";
  static override summary = "Run the server: the HTTP API and the deliveries.";
  static override description =
    "Runs until it is stopped (Ctrl-C or SIGTERM); what is under way is then finished or handed back, and a second signal ends it at once. The log goes to stderr. The first start puts an admin token into the file `token` of the data folder. With tls.cert and tls.key set it speaks https. SIGHUP has a server that is not at a terminal take up its certificate and its log level again.";
  static override examples = [
    { description: "On this machine, without tokens", command: "<%= config.bin %> serve --dev" },
    {
      description: "For others, with its data elsewhere",
      command: "<%= config.bin %> serve --host 0.0.0.0 --port 8080 --data /var/lib/evreg",
    },
  ];
  static override flags = {
    host: Flags.string({ summary: "Address to listen on (default 127.0.0.1).", helpValue: "ADDRESS" }),
    port: numberFlag("Port to listen on (default 7480); 0 takes any free one."),
    dev: Flags.boolean({
      summary: "For one's own machine: no token needed, http: and loopback handlers allowed, loopback only.",
    }),
    "log-level": Flags.option({
      summary:
        "The least important log lines to write (default info; with --dev debug, a line for each request and delivery).",
      options: ["debug", "info", "warn", "error", "silent"] as const,
      helpValue: "debug|info|warn|error|silent",
    })(),
    "log-format": Flags.option({
      summary: "pretty for people, json for machines; auto tells by the terminal.",
      options: ["auto", "pretty", "json"] as const,
      helpValue: "auto|pretty|json",
    })(),
    "accept-loss": acceptLossFlag,
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Serve);
    const { config, places, file } = await readSettings(flags);
    const [{ createLogger }, { listenForStop }, { startServer }] = await Promise.all([
      import("../runtime/pino-logger.ts"),
      import("../runtime/stop-signals.ts"),
      import("../app.ts"),
    ]);
    const { dev } = flags;
    // Who tries things out wants to see each request and each delivery.
    const levelOf = (loaded: Pick<LoadedConfig, "config" | "places">): LogLevel =>
      dev && !loaded.places.has("log.level") ? "debug" : loaded.config.log.level;
    const level = levelOf({ config, places });
    const logger = await createLogger({ ...config.log, level });
    faultsOfServer(level === "silent" ? undefined : logger);
    const fatal = Promise.withResolvers<EvregError>();
    leaveInterruption();
    const isAtTerminal = process.stderr.isTTY;
    const signals = listenForStop(
      (code) => process.exit(code),
      process,
      Date.now,
      isAtTerminal ? undefined : ["SIGINT", "SIGTERM"],
    );
    let reload: (() => Promise<void>) | undefined;
    if (!isAtTerminal) process.on("SIGHUP", () => void reload?.());
    const { version } = this.config;
    const acceptsLoss = flags["accept-loss"];
    const server = await startServer({ config, dev, version, logger, acceptsLoss, onFatal: fatal.resolve });
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
    if (isAtTerminal) await this.announce(server, config.data, { dev, file, needsToken });
    else {
      const { url, addresses } = server;
      const { tokenFile: token_file } = server;
      const first = token_file === undefined ? {} : { token_file };
      const place = { data: config.data, ...first, config: file ?? null };
      logger.info({ url, addresses, ...place, version }, "listening");
    }

    const reason = await Promise.race([signals.first, fatal.promise]);
    logger.info(typeof reason === "string" ? { signal: reason } : {}, "stopping");
    await server.stop();
    logger.info({}, "stopped");
    logger.flush();
    if (typeof reason === "string") return EXIT.done;
    throw reason;
  }

  private async announce(
    { url, addresses, tokenFile, evreg }: RunningServer,
    data: string,
    how: { readonly dev: boolean; readonly file: string | undefined; readonly needsToken: boolean },
  ): Promise<void> {
    const actions = (await evreg.actions.list()).data;
    const hasActions = actions.some(({ action }) => !isReservedName(action));
    const program = process.env["npm_lifecycle_event"] === undefined ? "evreg" : "npx evreg";
    const { version, configDir } = this.config;
    const context = contextInUse(configDir);
    process.stderr.write(
      announcement({
        version,
        url,
        addresses,
        data,
        dev: how.dev,
        configFile: how.file,
        tokenFile,
        needsToken: how.needsToken,
        context: context === undefined ? undefined : printableLine(context),
        hasActions,
        cwd: process.cwd(),
        program,
      }),
    );
  }
}
