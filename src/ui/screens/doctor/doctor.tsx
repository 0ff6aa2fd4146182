import type { Finding, FindingsMeta, Node } from "../../../domain/operations.ts";
import { useResource } from "../../api/resource.ts";
import { CopyCommand } from "../../parts/copy.tsx";
import { Button, Head, Section, Words } from "../../parts/layout.tsx";
import { Failed, type State, Status, Waiting } from "../../parts/states.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { capital, Time } from "../../parts/values.tsx";

const KINDS: Readonly<Record<Finding["status"], { readonly state: State; readonly title: string }>> = {
  problem: { state: "failed", title: "Problems" },
  warning: { state: "failing", title: "Warnings" },
  ok: { state: "active", title: "All well" },
};

/** What evreg finds about itself, and what to do; problems first. */
export function Doctor() {
  const read = useResource<readonly Finding[], FindingsMeta>("/v1/doctor");
  const { answer, error, reload } = read;
  const checked = answer?.meta?.time;
  return (
    <div class="stack narrow">
      <Head
        title="Doctor"
        facts={{ Checked: checked !== undefined && <Time at={checked} exact /> }}
        acts={
          <>
            <Button run={reload} label="Check again" />
            <CopyCommand text="evreg doctor" />
          </>
        }
      />
      {answer !== undefined && <Failed error={error} reload={reload} />}
      {answer === undefined ? (
        <div class="panel">
          <Waiting source={read} />
        </div>
      ) : (
        Object.entries(KINDS).map(([status, { title }]) => {
          const found = answer.data.filter((finding) => finding.status === status);
          return (
            found.length > 0 && (
              <Section key={status} title={title} note={found.length}>
                <Findings findings={found} />
              </Section>
            )
          );
        })
      )}
      {answer !== undefined && <Nodes />}
    </div>
  );
}

/** What was found, each with what to do about it. */
export function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <ul class="panel findings">
      {findings.map(({ status, check, found, remedy }, index) => (
        <li key={index}>
          <Status state={KINDS[status].state} word={false} words={status} />
          <div>
            <p class="break">
              <strong class="strong">{capital(check)}.</strong> {found}
            </p>
            {remedy !== null && (
              <p class="soft break">
                <Words text={remedy} />
              </p>
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}

const NODES_EVERY_MS = 5_000;

const NODE_COLUMNS: readonly Column<Node>[] = [
  { head: "Node", grow: true, cell: ({ host, pid }) => `${host} (${pid})` },
  {
    head: "Status",
    cell: ({ status }) => <Status state={status === "gone" ? "failed" : "active"} words={status} />,
  },
  { head: "Shards", right: true, cell: ({ shards }) => shards },
  { head: "Version", wide: true, cell: ({ version }) => version },
  { head: "Started", wide: true, cell: ({ started_at: at }) => <Time at={at} /> },
  { head: "Seen", cell: ({ seen_at: at }) => <Time at={at} /> },
];

/** The servers on the data, where there are several; commands that have them open are left out. */
function Nodes() {
  const { answer } = useResource<readonly Node[]>("/v1/nodes", { everyMs: NODES_EVERY_MS });
  const nodes = answer?.data.filter(({ status }) => status !== "visiting") ?? [];
  if (nodes.length < 2) return null;
  return (
    <Section title="Nodes" note={nodes.length}>
      <div class="panel">
        <Table label="Nodes" rows={nodes} columns={NODE_COLUMNS} keyOf={({ id }) => id} />
      </div>
    </Section>
  );
}
