import { useState } from "preact/hooks";
import type { Finding, FindingsMeta } from "../../../domain/operations.ts";
import { useResource } from "../../api/resource.ts";
import { CopyCommand } from "../../parts/copy.tsx";
import { Failed, Waiting } from "../../parts/states.tsx";
import { type State, Status } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";

const STATES: Readonly<Record<Finding["status"], State>> = {
  problem: "failed",
  warning: "failing",
  ok: "active",
};
const ORDER: readonly Finding["status"][] = ["problem", "warning", "ok"];
const TITLES: Readonly<Record<Finding["status"], string>> = {
  problem: "Problems",
  warning: "Warnings",
  ok: "All well",
};

/** What evreg finds about itself, and what to do; problems first. */
export function Doctor() {
  const [isBusy, setBusy] = useState(false);
  const { answer, error, reload } = useResource<readonly Finding[], FindingsMeta>("/v1/doctor");
  const checked = answer?.meta?.time;
  const [before, setBefore] = useState(checked);
  if (before !== checked || (error !== undefined && isBusy)) {
    setBefore(checked);
    setBusy(false);
  }
  return (
    <div class="stack narrow">
      <header class="head">
        <div class="what">
          <h1>Doctor</h1>
          <p class="facts">
            {checked !== undefined && (
              <span>
                <b>Checked</b> <Time at={checked} exact />
              </span>
            )}
          </p>
        </div>
        <div class="acts">
          <button
            class="btn"
            disabled={isBusy}
            onClick={() => {
              setBusy(true);
              reload();
            }}
          >
            {isBusy ? "Checking…" : "Check again"}
          </button>
          <CopyCommand text="evreg doctor" />
        </div>
      </header>
      {error !== undefined && answer !== undefined && <Failed error={error} reload={reload} />}
      {answer === undefined ? (
        <div class="panel">
          <Waiting error={error} reload={reload} />
        </div>
      ) : (
        ORDER.map((status) => (
          <Group
            key={status}
            status={status}
            findings={answer.data.filter((finding) => finding.status === status)}
          />
        ))
      )}
    </div>
  );
}

function Group(props: { readonly status: Finding["status"]; readonly findings: readonly Finding[] }) {
  const { status, findings } = props;
  if (findings.length === 0) return null;
  return (
    <section>
      <header>
        <h2>{TITLES[status]}</h2>
        <p>{findings.length}</p>
      </header>
      <ul class="panel findings">
        {findings.map((finding, index) => (
          <li key={index}>
            <Status state={STATES[status]} word={false} words={status} />
            <div>
              <p class="break">
                <strong class="strong">{capital(finding.check)}.</strong> {finding.found}
              </p>
              {finding.remedy !== null && (
                <p class="soft break">
                  <WithCommands text={finding.remedy} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

const capital = (text: string): string => (text[0] ?? "").toUpperCase() + text.slice(1);

/** A sentence whose commands stand between backticks. */
function WithCommands({ text }: { readonly text: string }) {
  return (
    <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}
