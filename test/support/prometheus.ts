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
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/y;
const NUMBER = /^(?:[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?|\+Inf)$/;

/**
 * Reads the text format of Prometheus (0.0.4), and takes nothing that is merely close to it: each metric has its help and
 * type once and first, all of its lines in one place, no two lines of one name with the same labels; counters are finite and end in
 * `_total`; histograms have rising buckets that end with their count.
 */
export function parseMetrics(text: string): ReadonlyMap<string, Family> {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const families = new Map<string, { name: string; type: Family["type"]; help: string; series: Series[] }>();
  const seen = new Set<string>();
  let help: readonly [name: string, text: string] | undefined;
  let current: { name: string; type: Family["type"]; help: string; series: Series[] } | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    if (line === "") continue;
    const [, kind, name = "", rest = ""] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (kind === "HELP") {
      help = [name, rest];
      continue;
    }
    if (kind === "TYPE") {
      if (help?.[0] !== name) throw new Error(`${name} has no help`);
      if (families.has(name)) throw new Error(`${name} is there twice`);
      if (rest !== "counter" && rest !== "gauge" && rest !== "histogram") throw new Error(`type of ${name}`);
      current = { name, type: rest, help: help[1], series: [] };
      families.set(name, current);
      continue;
    }
    const one = seriesOf(line);
    if (current === undefined || !isOf(current, one.name)) throw new Error(`out of place: ${line}`);
    const key = `${one.name} ${JSON.stringify(one.labels, Object.keys(one.labels).toSorted())}`;
    if (seen.has(key)) throw new Error(`twice: ${line}`);
    seen.add(key);
    current.series.push(one);
  }
  for (const family of families.values()) check(family);
  return families;
}

function seriesOf(line: string): Series {
  const [, name, labels, value] = LINE.exec(line) ?? [];
  if (name === undefined || value === undefined || !NUMBER.test(value))
    throw new Error(`not a line: ${line}`);
  return {
    name,
    labels: labels === undefined ? {} : labelsOf(labels),
    value: Number(value.replace("+Inf", "Infinity")),
  };
}

function labelsOf(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value] = LABEL.exec(text) ?? [];
    if (name === undefined || value === undefined || name in labels) throw new Error(`labels: ${text}`);
    labels[name] = value;
  }
  return labels;
}

function isOf({ name, type }: Family, series: string): boolean {
  if (type !== "histogram") return series === name;
  return series === `${name}_bucket` || series === `${name}_sum` || series === `${name}_count`;
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
