import { release } from "node:os";
import { fine, type Finding } from "../domain/finding.ts";

/** @param version of evreg */
export function program(version: string): Finding {
  const { platform, arch, version: node } = process;
  return fine("program", `evreg ${version} on Node ${node}, ${platform} ${release()}, ${arch}.`);
}
