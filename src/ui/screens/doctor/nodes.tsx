import type { Node } from "../../../domain/operations.ts";
import { useResource } from "../../api/resource.ts";
import { Section } from "../../parts/layout.tsx";
import { Status } from "../../parts/status.tsx";
import { type Column, Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";

const EVERY_MS = 5_000;

const COLUMNS: readonly Column<Node>[] = [
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
export function Nodes() {
  const { answer } = useResource<readonly Node[]>("/v1/nodes", { everyMs: EVERY_MS });
  const nodes = answer?.data.filter(({ status }) => status !== "visiting") ?? [];
  if (nodes.length < 2) return null;
  return (
    <Section title="Nodes" note={nodes.length}>
      <div class="panel">
        <Table label="Nodes" rows={nodes} columns={COLUMNS} keyOf={({ id }) => id} />
      </div>
    </Section>
  );
}
