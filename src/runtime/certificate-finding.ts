import { fine, type Finding, problem, warning } from "../domain/finding.ts";
import { toIso } from "./clock.ts";

const SOON_MS = 14 * 24 * 60 * 60_000;

/** Of the certificate that a server proves itself with; nothing where it has none. */
export function certificateFindings(endsMs: number | undefined, nowMs: number): readonly Finding[] {
  return endsMs === undefined ? [] : [certificateFinding(endsMs, nowMs)];
}

function certificateFinding(endsMs: number, nowMs: number): Finding {
  const check = "certificate";
  const remedy = "Renew the files of tls.cert and tls.key, and send the server SIGHUP.";
  if (endsMs <= nowMs) return problem(check, `The certificate ended at ${toIso(endsMs)}.`, remedy);
  if (endsMs - nowMs <= SOON_MS) return warning(check, `The certificate ends at ${toIso(endsMs)}.`, remedy);
  return fine(check, `The certificate is valid until ${toIso(endsMs)}.`);
}
