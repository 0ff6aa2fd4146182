import { statSync } from "node:fs";
import { folderFindings, transportFindings } from "../app/doctor-findings.ts";
import type { Config } from "../config/keys.ts";
import { encryptionKeys } from "../config/values.ts";
import { EvregError } from "../domain/error.ts";
import { type Finding, fine, problem, warning } from "../domain/operations.ts";
import type { Evreg } from "../evreg.ts";
import { exitOnSignal } from "./io/interruption.ts";
import { stderrLogger } from "./io/output.ts";
import { countedAre, someOf } from "./io/text.ts";
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

/** A smaller difference between two clocks does no harm. */
const TOLERANCE_MS = 2_000;

/** What a server says of itself, and how it looks from here. That it does not answer is a finding. */
export async function serverFindings(
  evreg: Evreg,
  { where, version }: { where: string; version: string },
): Promise<readonly Finding[]> {
  try {
    const { data: health } = await evreg.health();
    const sentMs = Date.now();
    const { data, meta } = await evreg.doctor();
    const answeredMs = Date.now();
    return [
      fine("reach", `The server at ${where} answers in ${answeredMs - sentMs} ms.`),
      versions(health.version, version),
      clocks(Date.parse(meta.time), sentMs, answeredMs),
      ...data,
    ];
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

/** The server read its clock at some time between the question and the answer. */
function clocks(serverMs: number, sentMs: number, answeredMs: number): Finding {
  const apartMs = Math.max(sentMs - serverMs, serverMs - answeredMs, 0);
  if (apartMs <= TOLERANCE_MS) return fine("clocks", "The server's clock and this machine's agree.");
  const ahead = serverMs > answeredMs ? "ahead of" : "behind";
  return warning(
    "clocks",
    `The server's clock is ${(apartMs / 1_000).toFixed(1)} s ${ahead} this machine's.`,
    "Let a time service keep both; receivers refuse signatures whose time is minutes off.",
  );
}

function serverRemedy({ code }: EvregError): string {
  if (code === "unauthorized") return "Name a token with --token-file, or set EVREG_TOKEN.";
  if (code === "forbidden") return "Use a token with the scope admin for all applications.";
  if (code === "not_found") return "Bring the server to this version of evreg; an older one has no doctor.";
  return "Start the server, or name the right one with --url.";
}

/** Findings on a data folder without a server. The data are read only where that changes nothing. */
async function folderTargetFindings(
  { config, isNamed }: FolderTarget,
  version: string,
): Promise<readonly Finding[]> {
  const { data: folder } = config;
  const app = await import("../app/server.ts");
  if (config.database.url !== undefined) {
    return [...transportFindings(config), ...(await inDatabase(config, version))];
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
  const about = [notRunning(folder, "Start one with `evreg serve`."), ...transportFindings(config)];
  const { inspectMigrations } = await app.loadMigrations();
  const { fileTask } = await app.loadFileChecks();
  try {
    const status = inspectMigrations(folder);
    if (!status.exists || status.current === 0) {
      return [...about, ...folderFindings(folder), fine("form", "The folder holds no data yet.")];
    }
    const encryption = { keys: encryptionKeys(config.encryption) };
    const looked = await exitOnSignal(() => fileTask("examineFile", status.file, { encryption }));
    const whole = fileFindings(looked);
    if (status.pending.length > 0) {
      const steps = status.pending.map((step) => `${step.version} (${step.name})`).join(", ");
      const sentence = `The data file has schema version ${status.current}; still to do: ${steps}.`;
      const remedy = "The next start of a server does it; `evreg migrate` does it now.";
      return [...about, ...folderFindings(folder), ...whole, warning("form", sentence, remedy)];
    }
    const form = fine("form", `The data file has schema version ${status.current}, the latest.`);
    const data = await withLocal(config, version, async (evreg) => (await evreg.doctor()).data);
    return [...about, ...data, ...whole, form];
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    const [, ...others] = about;
    const server = notRunning(folder, "None can be started before the problem with the data is solved.");
    const { restoreAdvice } = await app.loadRestoreAdvice();
    const remedy =
      error.code === "invalid"
        ? `Stop what uses the folder, and ${restoreAdvice(folder)}.`
        : folderRemedy(error);
    const data = problem("data", error.message, remedy);
    return [server, ...others, ...folderFindings(folder), data];
  }
}

async function withLocal<T>(config: Config, version: string, ask: (evreg: Evreg) => Promise<T>): Promise<T> {
  const { openLocal } = await import("../app/server.ts");
  const evreg = await openLocal({
    command: "doctor",
    version,
    config,
    needsData: true,
    logger: stderrLogger,
  });
  try {
    await lookForTokens(evreg, config.data);
    return await ask(evreg);
  } finally {
    await evreg.close();
  }
}

/** What the data in a database show, where no server of this machine has it open. */
async function inDatabase(config: Config, version: string): Promise<readonly Finding[]> {
  try {
    return await withLocal(config, version, async (evreg) => (await evreg.doctor()).data);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    const finding = error.code === "not_found" ? warning : problem;
    return [finding("database", error.message, folderRemedy(error))];
  }
}

function notRunning(folder: string, remedy: string): Finding {
  return warning("server", `No server runs on ${folder}: nothing is delivered.`, remedy);
}

function folderRemedy({ code }: EvregError): string {
  if (code === "conflict") return "End that process, or ask again when it has ended.";
  return "Fix what it says, and ask again.";
}

/** The part of a file check that says what is wrong. */
interface FileCheck {
  readonly damaged_events: readonly number[];
  readonly events_without_checksum: number;
}

/** What is found of a file whose pages and indexes are whole. */
export function fileFindings(looked: FileCheck): readonly Finding[] {
  const { damaged_events: damaged, events_without_checksum: unknown } = looked;
  const findings: Finding[] = [];
  if (damaged.length > 0) {
    findings.push(
      problem(
        "events",
        `${countedAre(damaged.length, "event")} damaged: ${someOf(damaged)}. What is kept of them is not what was published; they are neither shown nor sent.`,
        "Look at the disk and the memory of the machine; stop the server, and restore a backup from before the damage: `evreg restore FILE --force`.",
      ),
    );
  }
  const whole = "Every page and index of the data file is whole";
  if (findings.length > 0) return [fine("integrity", `${whole}.`), ...findings];
  if (unknown === 0) return [fine("integrity", `${whole}, and every event is as it was published.`)];
  const sentence = `${whole}, and every event with a checksum is as it was published. ${countedAre(unknown, "event")} from before there were checksums, so of ${unknown === 1 ? "it" : "them"} that is not known.`;
  return [fine("integrity", sentence)];
}
