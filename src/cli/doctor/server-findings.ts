import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EvregError } from "../../domain/error.ts";
import { fine, type Finding, problem, warning } from "../../domain/finding.ts";
import type { Evreg } from "../../evreg.ts";
import { interruption } from "../interruption.ts";
import { writeBackup } from "../backup-file.ts";
import { fileFindings } from "./file-findings.ts";

/** Apart by less, nothing that goes by a clock goes wrong. */
const TOLERANCE_MS = 2_000;

/** What a server says of itself, and what it looks like from here. Never fails: what does not answer is a finding. */
export async function serverFindings(
  evreg: Evreg,
  { where, version, deep }: { readonly where: string; readonly version: string; readonly deep: boolean },
): Promise<readonly Finding[]> {
  try {
    const { data: health } = await evreg.health();
    const askedMs = Date.now();
    const { data, meta } = await evreg.doctor();
    const answeredMs = Date.now();
    return [
      reached(where, answeredMs - askedMs),
      versions(health.version, version),
      clocks(Date.parse(meta.time), askedMs, answeredMs),
      ...data,
      ...(deep ? await integrity(evreg) : []),
    ];
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    return [problem("reach", `${where} could not be asked: ${error.message}`, serverRemedy(error))];
  }
}

function reached(where: string, tookMs: number): Finding {
  return fine("reach", `The server at ${where} answers in ${tookMs} ms.`);
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
function clocks(serverMs: number, askedMs: number, answeredMs: number): Finding {
  const apartMs = Math.max(askedMs - serverMs, serverMs - answeredMs, 0);
  if (apartMs <= TOLERANCE_MS) return fine("clocks", "The server's clock and this machine's agree.");
  const ahead = serverMs > answeredMs ? "ahead of" : "behind";
  return warning(
    "clocks",
    `The server's clock is ${(apartMs / 1_000).toFixed(1)} s ${ahead} this machine's.`,
    "Let a time service keep both; receivers refuse signatures whose time is minutes off.",
  );
}

/** The server makes a backup and its digest; reading it here finds out whether all of it can be read. */
async function integrity(evreg: Evreg): Promise<readonly Finding[]> {
  const { loadFileChecks } = await import("../../app.ts");
  const { checkFile } = await loadFileChecks();
  let folder: string;
  try {
    folder = await mkdtemp(join(tmpdir(), "evreg-doctor-"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const found = `The server's data was not looked through: no copy of it can be put into ${tmpdir()}: ${code ?? message}.`;
    return [warning("integrity", found, "Set TMPDIR to a folder that can be written to.")];
  }
  try {
    const backup = await evreg.backup();
    try {
      const check = (path: string) => checkFile(path, { name: "The server's data file" });
      const copy = join(folder, "copy.db");
      const looked = await writeBackup(copy, backup, { force: false, check, signal: interruption() });
      return fileFindings("The server's data file", looked);
    } finally {
      await backup.close();
    }
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    if (error.code !== "invalid")
      return [warning("integrity", error.message, "Try again once that is mended.")];
    return [
      problem("integrity", error.message, "Stop the server, and restore the last backup that is whole."),
    ];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function serverRemedy({ code }: EvregError): string {
  if (code === "unauthorized") return "Name a token with --token-file, or set EVREG_TOKEN.";
  if (code === "forbidden") return "Use a token with the scope admin for all applications.";
  if (code === "not_found") return "Bring the server to this version of evreg; an older one has no doctor.";
  return "Start the server, or name the right one with --url.";
}
