import { statSync } from "node:fs";
import type { Config } from "../../config/config.ts";
import { encryptionKeys } from "../../config/encryption-keys.ts";
import { EvregError } from "../../domain/error.ts";
import { fine, type Finding, problem, warning } from "../../domain/finding.ts";
import { folderFindings } from "../../runtime/folder-findings.ts";
import { endingAtOnce } from "../interruption.ts";
import { stderrLogger } from "../stderr-logger.ts";
import type { FolderTarget } from "../target.ts";
import { fileFindings } from "./file-findings.ts";

const PORT_ANSWERS_WITHIN_MS = 2_000;

/** What a data folder that no server runs on is like. What it holds is only asked for where that changes nothing. */
export async function folderTargetFindings(
  { config, isNamed }: FolderTarget,
  version: string,
): Promise<readonly Finding[]> {
  const { data: folder } = config;
  const app = await import("../../app.ts");
  const listening = await portFinding(config);
  const there = statSync(folder, { throwIfNoEntry: false });
  if (there === undefined || !there.isDirectory()) {
    const found = there === undefined ? `There is no data folder ${folder}.` : `${folder} is no folder.`;
    const begins = "Start a server with `evreg serve`, which makes it";
    const remedy =
      there === undefined ? `${begins}; or name another with --data.` : "Name another with --data.";
    // Whoever names a folder means one that is there; in the default one nothing may have begun yet.
    const isMistake = isNamed || there !== undefined;
    return [(isMistake ? problem : warning)("folder", found, remedy), listening];
  }
  const about = [
    warning("server", `No server runs on ${folder}: nothing is delivered.`, "Start one with `evreg serve`."),
    listening,
  ];
  const { inspectMigrations } = await app.loadMigrations();
  const { checkFile } = await app.loadFileChecks();
  try {
    const status = inspectMigrations(folder);
    if (!status.exists || status.current === 0) {
      return [...about, ...folderFindings(folder), fine("form", "The folder holds no data yet.")];
    }
    const encryption = { keys: encryptionKeys(config.encryption) };
    const looked = await endingAtOnce(() => checkFile(status.file, { encryption }));
    const whole = fileFindings("The data file", looked);
    if (status.pending.length > 0) {
      const steps = status.pending.map((step) => `${step.version} (${step.name})`).join(", ");
      const found = `The data file has form ${status.current}; still to do: ${steps}.`;
      const remedy = "The next start of a server does it; `evreg migrate` does it now.";
      return [...about, ...folderFindings(folder), ...whole, warning("form", found, remedy)];
    }
    // A start may be refused then, and what it would tell is not to be trusted.
    if (looked.impossible.length > 0) return [...about, ...folderFindings(folder), ...whole];
    const form = fine("form", `The data file has form ${status.current}, the latest.`);
    const evreg = await app.openLocal({ command: "doctor", version, config, logger: stderrLogger });
    try {
      const { data } = await evreg.doctor();
      return [...about, ...data, ...whole, form];
    } finally {
      await evreg.close();
    }
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    return [...about, ...folderFindings(folder), problem("data", error.message, folderRemedy(error))];
  }
}

function folderRemedy({ code }: EvregError): string {
  if (code === "invalid") return "Restore the last backup that is whole: `evreg restore FILE --force`.";
  if (code === "conflict") return "End that process, or ask again when it has ended.";
  return "Mend what it says, and ask again.";
}

/** Whether a server could listen where the configuration says. */
async function portFinding({ host, port }: Config): Promise<Finding> {
  const { createServer } = await import("node:net");
  const server = createServer();
  const refused = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    server.once("error", resolve);
    server.listen(port, host, () => server.close(() => resolve(undefined)));
  });
  const where = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (refused === undefined) return fine("port", `A server can listen at ${where}.`);
  const other = refused.code === "EADDRINUSE" ? await evregAt(host, port) : undefined;
  if (other !== undefined) {
    return warning(
      "port",
      `The evreg that listens at ${where} has another data folder.`,
      `To act on it, give --url ${other}; for a server on this folder, name another port with --port.`,
    );
  }
  const why = refused.code === "EADDRINUSE" ? "another program listens there" : (refused.code ?? "refused");
  return warning(
    "port",
    `A server could not listen at ${where}: ${why}.`,
    "Name another with --port or --host.",
  );
}

/** The address of an evreg that listens there; one that is not asked over http is not told from other programs. */
async function evregAt(host: string, port: number): Promise<string | undefined> {
  const { isLoopbackHost } = await import("../../config/loopback.ts");
  const { connect } = await import("../../client/connect.ts");
  const name = isLoopbackHost(host) ? host : "127.0.0.1";
  const url = `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
  const evreg = connect({ url, timeoutMs: PORT_ANSWERS_WITHIN_MS });
  try {
    const { data } = await evreg.health();
    return typeof data?.version === "string" ? url : undefined;
  } catch {
    return undefined;
  } finally {
    await evreg.close();
  }
}
