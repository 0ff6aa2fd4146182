import { Section } from "../../parts/layout.tsx";
import { capital } from "../../parts/texts.ts";
import type { Finding } from "../../../domain/operations.ts";
import { useResource } from "../../api/resource.ts";
import { Status } from "../../parts/status.tsx";
import { linkTo } from "../../parts/route.ts";

const EVERY_MS = 60_000;
/** What these find stands in words above. */
const SAID_ABOVE = new Set(["handlers", "backlog"]);

/** What the doctor finds wrong with the server itself; nothing, where it finds nothing. */
export function DoctorProblems() {
  const findings = useResource<readonly Finding[]>("/v1/doctor", { everyMs: EVERY_MS }).answer?.data ?? [];
  const notable = findings.filter(({ status }) => status !== "ok");
  if (notable.every(({ check }) => SAID_ABOVE.has(check))) return null;
  const problems = notable.filter(({ check, status }) => status === "problem" && !SAID_ABOVE.has(check));
  const counts = [countText(notable, "problem"), countText(notable, "warning")].filter((text) => text !== "");
  return (
    <Section
      title="The doctor's findings"
      note={counts.join("; ")}
      aside={
        <a class="push" href={linkTo(["doctor"])}>
          All checks
        </a>
      }
    >
      {problems.length > 0 && (
        <ul class="panel attention">
          {problems.map(({ check, found, remedy }) => (
            <li key={check}>
              <span class="danger-text row">
                <Status state="failed" word={false} />
                {capital(check)}
              </span>
              <p>
                <span class="strong">{found}</span> {remedy}
              </p>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** `2 problems: disk, handlers (above)` */
function countText(findings: readonly Finding[], status: "problem" | "warning"): string {
  const matching = findings.filter((finding) => finding.status === status);
  if (matching.length === 0) return "";
  const names = matching.map(({ check }) => (SAID_ABOVE.has(check) ? `${check} (above)` : check));
  return `${matching.length} ${status}${matching.length === 1 ? "" : "s"}: ${names.join(", ")}`;
}
