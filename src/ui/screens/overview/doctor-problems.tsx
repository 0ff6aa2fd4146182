import { Section } from "../../parts/layout.tsx";
import { capital, countText } from "../../parts/texts.ts";
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
  const of = (status: Finding["status"]) =>
    findings.filter((finding) => finding.status === status && !SAID_ABOVE.has(finding.check));
  const [problems, warnings] = [of("problem"), of("warning")];
  if (problems.length + warnings.length === 0) return null;
  return (
    <Section
      title="The doctor's findings"
      note={`${countText(problems.length, "problem")}, ${countText(warnings.length, "warning")}`}
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
