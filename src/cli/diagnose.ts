import { statSync } from "node:fs";
import { folderFindings, transportFindings } from "../app/doctor-findings.ts";
import type { Config } from "../config/keys.ts";
import { EvregError } from "../domain/error.ts";
import { type Finding, fine, problem, warning } from "../domain/operations.ts";
import type { Evreg } from "../evreg.ts";
import { stderrLogger } from "./io/output.ts";
import type { TargetFlags } from "./target/next-command.ts";
import { findTarget, type FolderTarget, lookForTokens } from "./target/target.ts";

/** Looks at the server that a command would act on, or at the data folder where none runs. */
export async function diagnose(flags: TargetFlags, version: string): Promise<readonly Finding[]> {
  let target;
  try {
    target = await findTarget(flags);
  } catch (error) {
    if (!(error instanceof EvregError) || error.code !== "unreachable") throw error;
    return [problem("reach", error.message, "Stop the process it names if it hangs, and start the server.")];
  }
  if (target.kind === "folder") return folderTargetFindings(target, version);
  const { evreg, location: where } = target;
  try {
    return await serverFindings(evreg, { where, version });
  } finally {
    await evreg.close();
  }
}

/** What a server says of itself, and how it looks from here. That it does not answer is a finding. */
export async function serverFindings(
  evreg: Evreg,
  { where, version }: { where: string; version: string },
): Promise<readonly Finding[]> {
  try {
    const { data: health } = await evreg.health();
    const { data } = await evreg.doctor();
    return [fine("reach", `The server at ${where} answers.`), versions(health.version, version), ...data];
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    return [problem("reach", `${where} could not be asked: ${error.message}`, serverRemedy(error))];
  }
}

function versions(server: string, here: string): Finding {
  if (server === here) return fine("versions", `The server and this command are evreg ${here}.`);
  return warning(
    "versions",
    `The server is evreg ${server}, and this command is evreg ${here}.`,
    "Use the same version on both: what one knows the other may not.",
  );
}

function serverRemedy({ code }: EvregError): string {
  if (code === "unauthorized") return "Name a token with --token-file, or set EVREG_TOKEN.";
  if (code === "forbidden") return "Use a token with the scope admin for all applications.";
  if (code === "not_found") return "Bring the server to this version of evreg; an older one has no doctor.";
  return "Start the server, or name the right one with --url.";
}

/** Findings on a data folder, or a database, that no server of this machine has open: what it says of itself, or why it does not. */
async function folderTargetFindings(
  { config, isNamed }: FolderTarget,
  version: string,
): Promise<readonly Finding[]> {
  const { data: folder, database } = config;
  const about = transportFindings(config);
  if (database.url !== undefined) {
    const data = await localFindings(config, version).catch((error: unknown) => [
      refusalOf(error, "database"),
    ]);
    return [...about, ...data];
  }
  const stat = statSync(folder, { throwIfNoEntry: false });
  if (stat === undefined) {
    const sentence = `There is no data folder ${folder}.`;
    const remedy = "Start a server with `evreg serve`, which makes it; or name another with --data.";
    // A named folder should exist; the default one may not have been used yet.
    return [(isNamed ? problem : warning)("folder", sentence, remedy)];
  }
  if (!stat.isDirectory()) {
    return [problem("folder", `${folder} is no folder.`, "Name another with --data.")];
  }
  const data = await localFindings(config, version).catch((error: unknown) => [
    ...folderFindings(folder),
    refusalOf(error, "data"),
  ]);
  const isRefused = data.some(({ check, status }) => check === "data" && status === "problem");
  const next = isRefused
    ? "None can be started before the problem with the data is solved."
    : "Start one with `evreg serve`.";
  return [warning("server", `No server runs on ${folder}: nothing is delivered.`, next), ...about, ...data];
}

async function localFindings(config: Config, version: string): Promise<readonly Finding[]> {
  const { openLocal } = await import("../app/server.ts");
  const options = { command: "doctor", version, config, needsData: true, logger: stderrLogger };
  const evreg = await openLocal(options);
  try {
    await lookForTokens(evreg, config.data);
    return (await evreg.doctor()).data;
  } finally {
    await evreg.close();
  }
}

/** Why the data cannot be opened. That there are none yet is no problem. */
function refusalOf(error: unknown, check: string): Finding {
  if (!(error instanceof EvregError)) throw error;
  const { code, message } = error;
  if (code === "not_found")
    return warning(check, message, "Start a server with `evreg serve`, which makes them.");
  const isTaken = code === "conflict";
  const remedy = isTaken
    ? "End that process, or ask again when it has ended."
    : "Fix what it says, and ask again.";
  return problem(check, message, remedy);
}
