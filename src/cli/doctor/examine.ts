import { EvregError } from "../../domain/error.ts";
import { type Finding, problem } from "../../domain/finding.ts";
import { findTarget } from "../target.ts";
import type { TargetFlags } from "../place.ts";
import { folderTargetFindings } from "./folder-target-findings.ts";
import { serverFindings } from "./server-findings.ts";

/** Looks at the server that a command would act on, or at the data folder where none runs. */
export async function examine(
  flags: TargetFlags,
  {
    version,
    deep,
    configFolder,
  }: { readonly version: string; readonly deep: boolean; readonly configFolder: string },
): Promise<readonly Finding[]> {
  let target;
  try {
    target = await findTarget(flags, configFolder);
  } catch (error) {
    if (!(error instanceof EvregError) || error.code !== "unreachable") throw error;
    return [problem("reach", error.message, "Stop the process it names if it hangs, and start the server.")];
  }
  if (target.kind === "folder") {
    return folderTargetFindings(target, version);
  }
  const { evreg, where } = target;
  try {
    return await serverFindings(evreg, { where, version, deep });
  } finally {
    await evreg.close();
  }
}
