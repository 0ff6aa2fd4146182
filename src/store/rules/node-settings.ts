/** What a node runs by, of which all on one database should have the same: texts by their names. */
export type NodeSettings = Readonly<Record<string, string>>;

/** A node as people know it, with what it runs by. */
export interface SetNode {
  readonly host: string;
  readonly pid: number;
  readonly settings: NodeSettings;
}

/** So many of the nodes that have a value are named. */
const MAX_NAMED = 3;

/** Says of each setting that nodes have different values of who has which, such as `retention.events is "30d" at …`. */
export function disagreements(nodes: readonly SetNode[]): readonly string[] {
  const names = new Set(nodes.flatMap(({ settings }) => Object.keys(settings)));
  return [...names].flatMap((name) => {
    const byValue = Map.groupBy(nodes, ({ settings }) => settings[name] ?? "null");
    if (byValue.size < 2) return [];
    const values = [...byValue].map(([value, having]) => {
      return `${value === "null" ? "not set" : value} at ${named(having)}`;
    });
    return [`${name} is ${values.join(", and ")}`];
  });
}

function named(nodes: readonly SetNode[]): string {
  const names = nodes.slice(0, MAX_NAMED).map(({ host, pid }) => `${host} (process ${pid})`);
  const more = nodes.length - names.length;
  return more === 0 ? names.join(", ") : `${names.join(", ")} and ${more} more`;
}
