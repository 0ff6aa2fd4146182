import type { Finding } from "../../../domain/operations.ts";
import { useResource } from "../../api/resource.ts";
import { Status } from "../../parts/status.tsx";
import { linkTo } from "../../shell/route.ts";

const EVERY_MS = 60_000;
/** What these find stands in words above. */
const SAID_ABOVE = new Set(["handlers", "order", "backlog"]);

/** What the doctor finds wrong with the server itself; nothing, where it finds nothing. */
export function DoctorProblems() {
  const findings = useResource<readonly Finding[]>("/v1/doctor", { everyMs: EVERY_MS }).answer?.data ?? [];
  const problems = findings.filter(({ check, status }) => status === "problem" && !SAID_ABOVE.has(check));
  const warnings = findings.filter(({ check, status }) => status === "warning" && !SAID_ABOVE.has(check));
  if (problems.length + warnings.length === 0) return null;
  return (
    <section aria-label="The doctor's findings">
      <header>
        <h2>The doctor's findings</h2>
        {warnings.length > 0 && (
          <p>
            {warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`}:{" "}
            {warnings.map(({ check }) => check).join(", ")}
          </p>
        )}
        <a class="push" href={linkTo(["doctor"])}>
          All checks
        </a>
      </header>
      {problems.length > 0 && (
        <ul class="panel attention">
          {problems.map(({ check, found, remedy }) => (
            <li key={check}>
              <span class="danger-text row">
                <Status state="failed" word={false} />
                {check[0]!.toUpperCase() + check.slice(1)}
              </span>
              <p>
                <span class="strong">{found}</span> {remedy}
              </p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
