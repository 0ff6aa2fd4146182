/** One line of metrics. */
interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly series: readonly Series[];
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"/g;

/**
 * Reads the text format of Prometheus as prom-client writes it, each metric with its help and type before its lines. What
 * evreg fills in is held to what it means: counters never fall below 0 and end in `_total`, and histograms have rising
 * buckets that end with their count.
 */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  const families = new Map<string, Family & { readonly series: Series[] }>();
  let help = "";
  let current: Series[] = [];
  for (const line of text.split("\n")) {
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === "HELP") help = rest;
    else if (kind === "TYPE") {
      current = [];
      families.set(name, { name, type: rest as Family["type"], help, series: current });
    } else if (line !== "") current.push(seriesOf(line));
  }
  for (const family of families.values()) check(family);
  return families;
}

function seriesOf(line: string): Series {
  const [, name, labels = "", value = ""] = LINE.exec(line) ?? [];
  if (name === undefined) throw new Error(`not a line: ${line}`);
  const pairs = [...labels.matchAll(LABEL)].map(([, label = "", text = ""]) => [label, text] as const);
  return { name, labels: Object.fromEntries(pairs), value: Number(value.replace("+Inf", "Infinity")) };
}

function check({ name, type, series }: Family): void {
  for (const { value } of series) if (!Number.isFinite(value)) throw new Error(`${name} is ${value}`);
  if (type === "counter" && !name.endsWith("_total")) throw new Error(`${name} is a counter`);
  if (type !== "gauge" && series.some(({ value }) => value < 0)) throw new Error(`${name} is below 0`);
  if (type !== "histogram") return;
  const buckets = series.filter((one) => one.name === `${name}_bucket`);
  const bounds = buckets.map(({ labels }) => Number(labels["le"]?.replace("+Inf", "Infinity")));
  const counts = buckets.map(({ value }) => value);
  if (bounds.at(-1) !== Infinity || !isRising(bounds) || !isRising(counts))
    throw new Error(`buckets of ${name}`);
  if (counts.at(-1) !== series.find((one) => one.name === `${name}_count`)?.value) {
    throw new Error(`the buckets of ${name} do not come to its count`);
  }
}

function isRising(values: readonly number[]): boolean {
  return values.every((value, index) => index === 0 || value >= values[index - 1]!);
}

/** The value of the one line of `name` that has these labels, among others. */
export function valueOf(
  metrics: ReadonlyMap<string, Family>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const family = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ""));
  const found = family?.series.filter(
    (one) =>
      one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value),
  );
  if (found?.length !== 1)
    throw new Error(`${found?.length ?? 0} lines of ${name} ${JSON.stringify(labels)}`);
  return found[0]!.value;
}
