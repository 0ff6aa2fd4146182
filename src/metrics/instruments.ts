import type { Registry } from "prom-client";
import type { Histogram } from "./counters.ts";

/** One value of a metric, with its labels. Each label has few values, all known beforehand. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Where it is not the metric's own. */
  readonly metricName?: string;
}

interface Named {
  /** With its unit; a counter's ends in `_total`. */
  readonly name: string;
  readonly help: string;
}

type Read<T> = () => T | Promise<T>;

/**
 * Puts metrics into a registry that are read when it is asked for them. Its own instruments are not used, as an increment
 * with labels takes 0.1 µs there and an observation 0.2, and adding to a field next to nothing.
 */
export class Instruments {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Only ever grows. */
  counter(named: Named, read: Read<readonly Sample[]>): void {
    this.#add(named, "counter", read);
  }

  gauge(named: Named, read: Read<readonly Sample[]>): void {
    this.#add(named, "gauge", read);
  }

  histogram(named: Named, source: Histogram): void {
    this.#add(named, "histogram", () => samplesOf(named.name, source));
  }

  #add({ name, help }: Named, type: "counter" | "gauge" | "histogram", read: Read<readonly Sample[]>): void {
    const metric = { name, get: async () => ({ name, help, type, values: await read() }) };
    // A registry asks no more of a metric than that.
    this.#registry.registerMetric(metric as unknown as Parameters<Registry["registerMetric"]>[0]);
  }
}

/** The only value of a metric without labels. */
export function only(value: number): readonly Sample[] {
  return [{ labels: {}, value }];
}

/** A value for each member, the name of which becomes the label's value. */
export function byLabel(label: string, values: Readonly<Record<string, number>>): readonly Sample[] {
  return Object.entries(values).map(([name, value]) => ({ labels: { [label]: name }, value }));
}

/** Buckets hold what is no larger than their bound, and so all of the smaller ones. */
function samplesOf(name: string, { bounds, counts, sum }: Histogram): readonly Sample[] {
  let count = 0;
  const buckets = [...bounds, "+Inf"].map((bound, index) => {
    count += counts[index] ?? 0;
    return { labels: { le: String(bound) }, value: count, metricName: `${name}_bucket` };
  });
  return [
    ...buckets,
    { labels: {}, value: sum, metricName: `${name}_sum` },
    { labels: {}, value: count, metricName: `${name}_count` },
  ];
}
